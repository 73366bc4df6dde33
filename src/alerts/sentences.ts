import type { Alert, AlertKind } from '../store/alert-records.ts';

/** The parts of an alert that its words need. */
export type AlertFacts = Omit<Alert, 'id' | 'organization_id' | 'subject_id' | 'created_at_ms'>;

/** The page of the organization on which something can be done about an alert. */
export const ALERT_PAGES: Readonly<Record<AlertKind, string>> = {
  credit_low: 'billing',
  spend_limit_near: 'projects',
  spend_limit_reached: 'projects',
  key_spend_limit_near: 'keys',
  key_spend_limit_reached: 'keys',
  tier_changed: 'billing',
  payment_credited: 'billing',
  key_expires: 'keys',
};

/** How amounts and days are written: in a mail by the service, on a page in the reader's own form. */
export interface AlertFormats {
  readonly money: (micros: number) => string;
  readonly day: (time_ms: number) => string;
}

/** Returns an alert in a few words, without the name of anything. */
export function alertTitle(alert: AlertFacts, { money }: AlertFormats): string {
  switch (alert.kind) {
    case 'credit_low':
      return `Credit is below ${money(alert.limit_micros ?? 0)}`;
    case 'spend_limit_near':
      return 'A project has used 80% of its spend limit';
    case 'spend_limit_reached':
      return 'A project has reached its spend limit';
    case 'key_spend_limit_near':
      return 'An API key has used 80% of its spend limit';
    case 'key_spend_limit_reached':
      return 'An API key has reached its spend limit';
    case 'tier_changed':
      return `You are now in Tier ${alert.to_tier}`;
    case 'payment_credited':
      return `${money(alert.amount_micros ?? 0)} was added to your credit`;
    case 'key_expires':
      return 'An API key expires soon';
  }
}

/** Returns what has happened, and what to do. `name` is that of the project or key, or other words for it. */
export function alertSentence(alert: AlertFacts, { money, day }: AlertFormats, name: string): string {
  const amount = money(alert.amount_micros ?? 0);
  const limit = money(alert.limit_micros ?? 0);
  switch (alert.kind) {
    case 'credit_low':
      return (alert.amount_micros ?? 0) > 0
        ? `${amount} is left. Add credit before it runs out: requests are refused without it.`
        : `The balance is ${amount}. Requests are refused until somebody adds credit.`;
    case 'spend_limit_near':
    case 'key_spend_limit_near':
      return `${name} has spent ${amount} of its ${limit} this month.`;
    case 'spend_limit_reached':
    case 'key_spend_limit_reached':
      return `${name} has spent ${amount} of its ${limit} this month. Requests that cost more than the rest are refused until the month ends or you raise the limit.`;
    case 'tier_changed':
      if (alert.to_tier === 0) return `You moved down from Tier ${alert.from_tier}. The API opens in Tier 1.`;
      return (alert.to_tier ?? 0) > (alert.from_tier ?? 0)
        ? `You moved up from Tier ${alert.from_tier}, and your limits are higher.`
        : `You moved down from Tier ${alert.from_tier}, and your limits are lower.`;
    case 'payment_credited':
      return 'Your payment has arrived. You can use it at once.';
    case 'key_expires':
      return `${name} stops working on ${day(alert.expires_at_ms ?? 0)}. Rotate it, or change when it expires.`;
  }
}
