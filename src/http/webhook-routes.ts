import { Elysia } from 'elysia';
import type { KeyDirectory } from '../accounts/key-directory.ts';
import { Refusal } from '../errors.ts';
import type { Log } from '../ops/log.ts';
import type { CreditContext } from '../payments/credit.ts';
import type { PaymentProvider } from '../payments/provider.ts';
import { handleWebhook, type WebhookResult } from '../payments/webhooks.ts';
import { type BodyLimits, readBytes } from './body-bytes.ts';
import type { RequestContexts } from './context.ts';
import { errorResponse, jsonResponse } from './responses.ts';

interface WebhookServices {
  readonly payments: { readonly context: CreditContext; readonly provider: PaymentProvider } | null;
  readonly keys: KeyDirectory;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly body_limits: BodyLimits;
}

/** Whose budget the bodies of webhooks are in: no id of a key looks like it. */
const WEBHOOK_BODIES = 'webhooks';

/**
 * `POST /webhooks/paddle`: what the payment provider reports. A 200 ends the provider's tries; a 503 makes it try again.
 * Without a provider the path does not exist.
 */
export function webhookRoutes(services: WebhookServices, contexts: RequestContexts) {
  return new Elysia({ name: 'webhooks' }).post(
    '/webhooks/paddle',
    async ({ request }) => {
      const context = contexts.of(request);
      const result = await receive(services, request);
      if (!(result instanceof Refusal))
        return jsonResponse(context.request_id, 200, { outcome: result.outcome });
      context.code = result.code;
      return errorResponse(context.request_id, result);
    },
    { parse: 'none', detail: { hide: true } },
  );
}

async function receive(services: WebhookServices, request: Request): Promise<WebhookResult | Refusal> {
  const { payments, keys, log } = services;
  if (payments === null) return new Refusal('not_found');
  const bytes = await readBytes(request, WEBHOOK_BODIES, services.body_limits);
  if (bytes instanceof Refusal) return bytes;
  let result: WebhookResult;
  try {
    result = await handleWebhook(
      payments.context,
      payments.provider,
      new TextDecoder().decode(bytes),
      request.headers.get('paddle-signature'),
    );
  } catch {
    return new Refusal('billing_unavailable');
  }
  if (result.outcome === 'forged') {
    log.warn('a payment webhook was not signed by the provider');
    return new Refusal('invalid_signature');
  }
  // A payment in another currency, or of an unknown organization, leaves no other trace than this line.
  if (result.outcome === 'irrelevant')
    log.info('a payment webhook moved no credit', { reason: result.reason });
  else if (result.outcome === 'unknown_payment')
    log.warn('a payment webhook names a payment that is not known');
  // A new tier must not wait for the cached lookups to end.
  else keys.invalidate();
  return result;
}
