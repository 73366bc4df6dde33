import type {
  EventDecision,
  EventSubject,
  KeptEvent,
  KeptOutcome,
  PaymentRecords,
} from '../store/payment-records.ts';
import type { PaymentEvent, PaymentReport } from './provider.ts';

/** The outcomes that can still change. */
export const OPEN_OUTCOMES: readonly KeptOutcome[] = ['unresolved', 'waiting'];

/** The outcome of an event. */
export interface Verdict {
  readonly outcome: KeptOutcome;
  /** The reason why it is irrelevant or unresolved. */
  readonly reason: string | null;
}

/** Returns the provider's id of the payment that an event is about; null when it names none. */
export function paymentOf(event: PaymentEvent): string | null {
  return event.kind === 'refunded' || event.kind === 'refund_reversed'
    ? event.payment_external_id
    : event.external_id;
}

/**
 * Stores an event with its outcome. A final outcome stays when the event is repeated; an open one is
 * replaced.
 */
export function keepEvent(
  payments: PaymentRecords,
  provider: string,
  report: PaymentReport,
  verdict: Verdict,
  now_ms: number,
): Promise<void> {
  const { event_id, type, occurred_at_ms, event } = report;
  const order = event.kind === 'completed' ? event.order : null;
  const kept: KeptEvent = {
    provider,
    event_id,
    type,
    kind: event.kind,
    occurred_at_ms,
    external_id: event.external_id,
    payment_external_id: paymentOf(event),
    payment_id: order?.payment_id ?? null,
    organization_id: order?.organization_id ?? null,
    amount_micros: 'amount_micros' in event ? event.amount_micros : null,
    ...verdict,
    received_at_ms: now_ms,
    decided_at_ms: now_ms,
  };
  return payments.keepEvent(kept, OPEN_OUTCOMES);
}

/** Gives all open events about the same payment or refund this final outcome. */
export function closeEvents(
  payments: PaymentRecords,
  provider: string,
  subject: EventSubject,
  outcome: KeptOutcome,
  now_ms: number,
): Promise<void> {
  return payments.decideEventsAbout(provider, subject, OPEN_OUTCOMES, { outcome, decided_at_ms: now_ms });
}

/**
 * Gives an event, and all open ones about the same payment or refund, the outcome that the operator has
 * chosen.
 */
export async function resolveEvent(
  payments: PaymentRecords,
  event: KeptEvent,
  chosen: Omit<EventDecision, 'decided_at_ms'>,
  now_ms: number,
  among: readonly KeptOutcome[] = OPEN_OUTCOMES,
): Promise<void> {
  const { provider, kind, external_id, payment_external_id } = event;
  const decision = { ...chosen, decided_at_ms: now_ms };
  await payments.decideEvent(event, among, decision);
  if (external_id === null || payment_external_id === null) return;
  const subject = { kind, external_id, payment_external_id };
  await payments.decideEventsAbout(provider, subject, among, decision);
}

/** Returns the refunds and reversals that have waited for their payment, in the order of arrival. */
export function unresolvedReturns(
  payments: PaymentRecords,
  provider: string,
  payment_external_id: string,
): Promise<KeptEvent[]> {
  return payments.returnEvents(provider, payment_external_id, 'unresolved');
}
