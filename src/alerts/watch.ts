import type { AlertKind, LimitedSpending, OpenAlert } from '../store/alert-records.ts';
import type { Records, Store } from '../store/store.ts';
import { type Clock, DAY_MS } from '../time/clock.ts';
import { monthOf } from '../time/month.ts';
import { type RaisedAlert, raiseAlert } from './raise.ts';

/** The share of a spend limit from which its use is near the limit. */
const NEAR_PERCENT = 80;
/**
 * The share from which it counts as used up. A request that would exceed the limit is refused, so that the spending of a
 * month ends a little below.
 */
const REACHED_PERCENT = 99.5;
/** The time before a key's end at which members are alerted. A key that was made for less is not announced. */
const EXPIRY_MS = 7 * DAY_MS;

/**
 * Raises an alert for each condition that has begun, and ends those whose condition is over, so that it may be raised
 * again. Reads only, unless there is something to write.
 */
export async function watchAlerts({
  store,
  clock,
}: {
  readonly store: Store;
  readonly clock: Clock;
}): Promise<void> {
  const now_ms = clock.now_ms();
  const { begun, over } = await store.snapshot((records) => changesOf(records, now_ms));
  if (begun.length === 0 && over.length === 0) return;
  await store.transaction(async (records) => {
    // Another service may have written some meanwhile.
    const changes = await changesOf(records, now_ms);
    for (const { id } of changes.over) await records.alerts.endAlert(id, now_ms);
    for (const alert of changes.begun) await raiseAlert(records, alert, now_ms);
  });
}

/** Returns the conditions that have no alert yet, and the open alerts whose condition is over. */
async function changesOf(records: Pick<Records, 'alerts'>, now_ms: number) {
  const conditions = await conditionsAt(records, now_ms);
  const open = await records.alerts.openAlerts();
  const lasting = new Set(conditions.map(identityOf));
  const known = new Set(open.map(identityOf));
  return {
    begun: conditions.filter((condition) => !known.has(identityOf(condition))),
    over: open.filter((alert) => !lasting.has(identityOf(alert))),
  };
}

function identityOf({ organization_id, kind, subject_id }: Omit<OpenAlert, 'id'>): string {
  return `${organization_id} ${kind} ${subject_id}`;
}

async function conditionsAt({ alerts }: Pick<Records, 'alerts'>, now_ms: number): Promise<RaisedAlert[]> {
  const low = await alerts.organizationsWithLowCredit();
  const projects = await alerts.projectsNearLimit(monthOf(now_ms), NEAR_PERCENT);
  const keys = await alerts.keysNearLimit(monthOf(now_ms), NEAR_PERCENT);
  const expiring = await alerts.keysExpiring(now_ms, now_ms + EXPIRY_MS);
  return [
    ...low.map(({ id, credit_micros, credit_alert_micros }) => ({
      kind: 'credit_low' as const,
      organization_id: id,
      subject_id: id,
      amount_micros: credit_micros,
      limit_micros: credit_alert_micros,
    })),
    ...projects.map((one) => spendingOf(one, 'spend_limit_near', 'spend_limit_reached')),
    ...keys.map((one) => spendingOf(one, 'key_spend_limit_near', 'key_spend_limit_reached')),
    ...expiring
      .filter(({ created_at_ms, expires_at_ms }) => expires_at_ms - created_at_ms > EXPIRY_MS)
      .map(({ organization_id, key_id, name, expires_at_ms }) => ({
        kind: 'key_expires' as const,
        organization_id,
        subject_id: key_id,
        subject_name: name,
        expires_at_ms,
      })),
  ];
}

/** Returns one of two conditions, so that a limit that is used up at once causes one alert. */
function spendingOf(
  { name, spent_micros, limit_micros, ...of }: LimitedSpending,
  near: AlertKind,
  reached: AlertKind,
): RaisedAlert {
  const is_reached = spent_micros >= (limit_micros * REACHED_PERCENT) / 100;
  return {
    ...of,
    kind: is_reached ? reached : near,
    subject_name: name,
    amount_micros: spent_micros,
    limit_micros,
  };
}
