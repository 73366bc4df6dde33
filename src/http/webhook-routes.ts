import type { AccountContext } from '../access/context.ts';
import { type ErrorCode, Refusal } from '../errors/errors.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { Log } from '../log/log.ts';
import { paymentOf } from '../payments/event-journal.ts';
import type { PaymentProvider, PaymentReport } from '../payments/provider.ts';
import { handleWebhook, type WebhookResult } from '../payments/webhooks.ts';
import { type Problems, reported } from '../problems/problems.ts';
import type { Clock } from '../time/clock.ts';
import { BODY_CODES, type BodyLimits, type BodyRefusal, readBytes } from './body-bytes.ts';
import type { RequestContext } from './context.ts';
import { refusalOverAddressBudget, spendRefusal } from './refusal-gate.ts';
import { jsonResponse } from './responses.ts';
import { defineRoute, type Refused, type Route } from './route.ts';

export interface Payments {
  readonly context: AccountContext;
  readonly provider: PaymentProvider;
}

interface WebhookServices {
  readonly payments: Payments | null;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
  readonly body_limits: BodyLimits;
  readonly problems: Problems;
  readonly refusals: RefusalBudgets;
  readonly clock: Clock;
}

/** A genuine event of the provider moved no credit yet: a clock, a program or a payment must change first. */
class WebhookNotApplied extends Error {
  override readonly name = 'WebhookNotApplied';
}

const WEBHOOK_CODES = [
  'invalid_signature',
  'signature_outside_tolerance',
  'unreadable_webhook',
  'unresolved_payment',
  'billing_unavailable',
] as const satisfies readonly ErrorCode[];

type WebhookCode = (typeof WEBHOOK_CODES)[number];
type WebhookRefusal = Refusal<WebhookCode>;

/** Reports why an event was not applied, and returns the refusal with that code. */
type Failed = (code: WebhookCode, error: unknown) => WebhookRefusal;

/**
 * Returns the route `POST /webhooks/paddle`: the payment provider's reports. A 200 ends the provider's tries;
 * anything else makes it try again. Without a provider the path does not exist.
 */
export function webhookRoute(services: WebhookServices): Route {
  const { payments } = services;
  return defineRoute({
    method: 'POST',
    path: '/webhooks/paddle',
    refusals: [...WEBHOOK_CODES, ...BODY_CODES, 'rate_limit_exceeded'],
    operation: null,
    handle:
      payments === null
        ? null
        : async (request, context) => {
            const signature = payments.provider.signatureIn(request.headers);
            if (signature === null) {
              const { refusal, headers } = refuseStranger(
                services,
                context,
                new Refusal('invalid_signature'),
              );
              // The body is not read, so nothing else can follow on this connection.
              return { refusal, headers: { ...headers, connection: 'close' } };
            }
            const result = await receive(services, payments, request, context, signature);
            if (!(result instanceof Refusal)) {
              return jsonResponse(context.request_id, 200, { outcome: result.outcome });
            }
            return isOfProvider(result) ? { refusal: result } : refuseStranger(services, context, result);
          },
  });
}

/** Returns true if a refusal is of a call that the provider signed. */
function isOfProvider(refusal: WebhookRefusal | BodyRefusal): refusal is WebhookRefusal {
  return refusal.code !== 'invalid_signature' && WEBHOOK_CODES.some((code) => code === refusal.code);
}

/**
 * Refuses an unsigned call, from the budget of refusals of its address. The signature is checked first, so
 * that the provider's calls are accepted whatever else their address sends.
 */
function refuseStranger(
  services: WebhookServices,
  context: RequestContext,
  refusal: WebhookRefusal | BodyRefusal,
): Refused<WebhookCode | BodyRefusal['code'] | 'rate_limit_exceeded'> {
  const over_budget = refusalOverAddressBudget(services, context);
  if (over_budget !== null) return over_budget;
  spendRefusal(services, context, refusal);
  if (refusal.code === 'invalid_signature') {
    services.log.warn('a payment webhook was not signed by the provider');
  }
  return { refusal };
}

async function receive(
  services: WebhookServices,
  { context, provider }: Payments,
  request: Request,
  { request_id, client_address }: RequestContext,
  signature: string,
): Promise<WebhookResult | WebhookRefusal | BodyRefusal> {
  const failed: Failed = (code, error) =>
    reported(services.problems, { request_id, step: 'webhook', code, error });
  const bytes = await readBytes(request, { client_address }, services.body_limits);
  if (bytes instanceof Refusal) return bytes;
  let result: WebhookResult;
  try {
    result = await handleWebhook(context, provider, bytes, signature);
  } catch (error) {
    return failed('billing_unavailable', error);
  }
  return answer(services, result, failed);
}

/**
 * Returns the response to the provider, and logs it. The provider repeats a call without a 2xx for days.
 * Calls that can still become credit get such a response: a clock may be set, the program updated, or the
 * payment become known.
 */
function answer(
  { log }: WebhookServices,
  result: WebhookResult,
  failed: Failed,
): WebhookResult | WebhookRefusal {
  switch (result.outcome) {
    case 'forged':
      return new Refusal('invalid_signature');
    case 'outside_tolerance':
      log.error('a payment webhook was signed too long ago or ahead: check the clock of this machine', {
        age_s: result.age_s,
      });
      return failed(
        'signature_outside_tolerance',
        new WebhookNotApplied(`It was signed ${result.age_s} s ago.`),
      );
    case 'unreadable':
      log.error('a genuine payment webhook cannot be read: look its event up at the provider', {
        event_id: result.report?.event_id ?? null,
        type: result.report?.type ?? null,
      });
      return failed('unreadable_webhook', new WebhookNotApplied('It cannot be read.'));
    case 'unresolved':
      log.error(
        'a payment event waits for an operator unless its payment turns up: see "tds credit events"',
        {
          ...idsOf(result.report),
          reason: result.reason,
        },
      );
      return failed('unresolved_payment', new WebhookNotApplied(`It fits no payment: ${result.reason}.`));
    case 'waiting':
      log.warn(
        'a refund waits until enough of its payment is there: "tds credit pending" shows if it stays, and "tds credit dismiss" ends it',
        idsOf(result.report),
      );
      return result;
    case 'irrelevant':
      log.info('a payment event moved no credit', { ...idsOf(result.report), reason: result.reason });
      return result;
    default:
      return result;
  }
}

function idsOf({ event_id, type, event }: PaymentReport) {
  const order = event.kind === 'completed' ? event.order : null;
  return {
    event_id,
    type,
    external_id: event.external_id,
    payment_external_id: paymentOf(event),
    payment_id: order?.payment_id ?? null,
    organization_id: order?.organization_id ?? null,
    amount_micros: 'amount_micros' in event ? event.amount_micros : null,
  };
}
