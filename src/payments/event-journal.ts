import { and, desc, eq, inArray, or } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import { type PAYMENT_EVENT_OUTCOMES, paymentEvents } from '../../db/sqlite/schema.ts';
import type { PaymentEvent, PaymentReport } from './provider.ts';

export type KeptEvent = typeof paymentEvents.$inferSelect;
export type KeptOutcome = (typeof PAYMENT_EVENT_OUTCOMES)[number];
type Kind = KeptEvent['kind'];

/** Outcomes that can still become another. */
const OPEN_OUTCOMES: readonly KeptOutcome[] = ['unresolved', 'waiting'];

/** What came of an event. */
export interface Verdict {
  readonly outcome: KeptOutcome;
  /** Why it is irrelevant or unresolved. */
  readonly reason: string | null;
}

/** The provider's id of the payment that an event is about; null when it names none. */
export function paymentOf(event: PaymentEvent): string | null {
  return event.kind === 'refunded' || event.kind === 'refund_reversed'
    ? event.payment_external_id
    : event.external_id;
}

/**
 * Keeps an event with what came of it. A verdict that was final stays, however often the event comes; one that was open
 * is replaced. To be called inside a transaction.
 */
export function keepEvent(
  db: Db,
  provider: string,
  report: PaymentReport,
  verdict: Verdict,
  now_ms: number,
): void {
  const { event_id, type, occurred_at_ms, event } = report;
  const order = event.kind === 'completed' ? event.order : null;
  const facts = {
    type,
    kind: event.kind,
    occurred_at_ms,
    external_id: event.external_id,
    payment_external_id: paymentOf(event),
    payment_id: order?.payment_id ?? null,
    organization_id: order?.organization_id ?? null,
    amount_micros: 'amount_micros' in event ? event.amount_micros : null,
    ...verdict,
    decided_at_ms: now_ms,
  };
  db.insert(paymentEvents)
    .values({ provider, event_id, received_at_ms: now_ms, ...facts })
    .onConflictDoUpdate({
      target: [paymentEvents.provider, paymentEvents.event_id],
      set: facts,
      setWhere: inArray(paymentEvents.outcome, OPEN_OUTCOMES),
    })
    .run();
}

/** What identifies the payment or refund that an event is about. */
export interface EventSubject {
  readonly kind: Kind;
  readonly external_id: string;
  readonly payment_external_id: string;
}

function about(provider: string, { kind, external_id, payment_external_id }: EventSubject) {
  return and(
    eq(paymentEvents.provider, provider),
    // First by the payment: it has an index.
    eq(paymentEvents.payment_external_id, payment_external_id),
    eq(paymentEvents.external_id, external_id),
    eq(paymentEvents.kind, kind),
  );
}

/** Gives every open event about the same thing this final outcome. To be called inside a transaction. */
export function closeEvents(
  db: Db,
  provider: string,
  subject: EventSubject,
  outcome: KeptOutcome,
  now_ms: number,
): void {
  db.update(paymentEvents)
    .set({ outcome, reason: null, decided_at_ms: now_ms })
    .where(and(about(provider, subject), inArray(paymentEvents.outcome, OPEN_OUTCOMES)))
    .run();
}

/**
 * Gives an event, and every open one about the same thing, the outcome that the operator has chosen. To be called
 * inside a transaction.
 */
export function resolveEvent(
  db: Db,
  event: KeptEvent,
  chosen: { readonly outcome: 'assigned' | 'dismissed'; readonly organization_id?: string },
  now_ms: number,
): void {
  const { provider, event_id, kind, external_id, payment_external_id } = event;
  const itself = and(eq(paymentEvents.provider, provider), eq(paymentEvents.event_id, event_id));
  const same =
    external_id === null || payment_external_id === null
      ? undefined
      : about(provider, { kind, external_id, payment_external_id });
  db.update(paymentEvents)
    .set({ ...chosen, reason: null, decided_at_ms: now_ms })
    .where(and(or(itself, same), inArray(paymentEvents.outcome, OPEN_OUTCOMES)))
    .run();
}

/** Whether an event about this very thing has one of these outcomes. */
export function hasOutcome(
  db: Db,
  provider: string,
  subject: EventSubject,
  outcomes: readonly KeptOutcome[],
): boolean {
  const found = db
    .select({ event_id: paymentEvents.event_id })
    .from(paymentEvents)
    .where(and(about(provider, subject), inArray(paymentEvents.outcome, outcomes)))
    .get();
  return found !== undefined;
}

/** The refunds and reversals of a payment that have waited for the payment itself. */
export function unresolvedReturns(db: Db, provider: string, payment_external_id: string): KeptEvent[] {
  return db
    .select()
    .from(paymentEvents)
    .where(
      and(
        eq(paymentEvents.provider, provider),
        eq(paymentEvents.payment_external_id, payment_external_id),
        inArray(paymentEvents.kind, ['refunded', 'refund_reversed']),
        eq(paymentEvents.outcome, 'unresolved'),
      ),
    )
    .orderBy(paymentEvents.received_at_ms, paymentEvents.event_id)
    .all();
}

/** The events that an operator must look at, or all, newest first. */
export function keptEvents(
  db: Db,
  given: { readonly unresolved_only: boolean; readonly limit: number },
): KeptEvent[] {
  return db
    .select()
    .from(paymentEvents)
    .where(given.unresolved_only ? eq(paymentEvents.outcome, 'unresolved') : undefined)
    .orderBy(desc(paymentEvents.received_at_ms), desc(paymentEvents.event_id))
    .limit(given.limit)
    .all();
}

/** The kept event of this id, of that provider or of any. */
export function keptEvent(db: Db, event_id: string, provider?: string): KeptEvent | undefined {
  const ofProvider = provider === undefined ? undefined : eq(paymentEvents.provider, provider);
  return db
    .select()
    .from(paymentEvents)
    .where(and(ofProvider, eq(paymentEvents.event_id, event_id)))
    .get();
}
