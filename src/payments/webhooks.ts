import type { AccountContext } from '../access/context.ts';
import { applyPaymentReport } from './apply-event.ts';
import type { Verdict } from './event-journal.ts';
import type { PaymentProvider, PaymentReport } from './provider.ts';

/** The result of a webhook call. Every call with a report is stored, and answered by its verdict. */
export type WebhookResult =
  /** The provider did not send it. */
  | { readonly outcome: 'forged' }
  /** The provider sent it too long ago, or its clock is too far ahead. */
  | { readonly outcome: 'outside_tolerance'; readonly age_s: number }
  /** The provider sent it, but this version cannot read it; `report` when its ids could be stored. */
  | { readonly outcome: 'unreadable'; readonly report: PaymentReport | null }
  | {
      readonly outcome: Verdict['outcome'];
      readonly reason: string | null;
      readonly report: PaymentReport;
    };

/**
 * Handles a webhook call of a payment provider: the raw body exactly as received, and its signature header.
 * Forged, replayed and duplicated calls change nothing, and the order of calls does not matter. Rejects as
 * the store does: answer 503, and the provider sends it again.
 */
export async function handleWebhook(
  context: AccountContext,
  provider: PaymentProvider,
  body: Uint8Array,
  signature: string | null,
): Promise<WebhookResult> {
  const webhook = provider.readWebhook({ body, signature, now_ms: context.clock.now_ms() });
  switch (webhook.kind) {
    case 'forged':
      return { outcome: 'forged' };
    case 'outside_tolerance':
      return { outcome: 'outside_tolerance', age_s: webhook.age_s };
    case 'unreadable':
      return { outcome: 'unreadable', report: null };
    case 'report': {
      const { report } = webhook;
      const { outcome, reason } = await applyPaymentReport(context, provider.name, report);
      if (report.event.kind === 'unreadable' && outcome === 'unresolved')
        return { outcome: 'unreadable', report };
      return { outcome, reason, report };
    }
  }
}
