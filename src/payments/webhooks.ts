import type { GroupCommit } from '../../db/group-commit.ts';
import { applyPaymentEvent, type CreditContext, type EventOutcome } from './credit.ts';
import type { PaymentProvider } from './provider.ts';

/** What came of a webhook call. Only `applied` and `waiting` have written anything. */
export type WebhookResult =
  /** Not from the provider: answer 401. */
  | { readonly outcome: 'forged' }
  /** Genuine and done with: answer 200, or the provider sends it again. */
  | { readonly outcome: 'irrelevant'; readonly reason: string }
  | { readonly outcome: EventOutcome };

/** What webhooks are handled with, in a running service: nothing waits for another process on the event loop. */
export interface WebhookContext extends CreditContext {
  readonly commits: Pick<GroupCommit, 'run'>;
}

/**
 * Handles a webhook call of a payment provider: the raw body exactly as it came, and its signature header. Forged,
 * replayed and duplicated calls change nothing, and the order of calls does not matter. Throws what the database
 * throws: answer 503, and the provider sends it again.
 */
export async function handleWebhook(
  context: WebhookContext,
  provider: PaymentProvider,
  rawBody: string,
  signatureHeader: string | null,
): Promise<WebhookResult> {
  const webhook = await provider.readWebhook(rawBody, signatureHeader);
  switch (webhook.kind) {
    case 'forged':
      return { outcome: 'forged' };
    case 'irrelevant':
      return { outcome: 'irrelevant', reason: webhook.reason };
    case 'event':
      return {
        outcome: await context.commits.run(() => applyPaymentEvent(context, provider.name, webhook.event)),
      };
  }
}
