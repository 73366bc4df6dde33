import { asc, eq } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { organizations, payments } from '../../db/sqlite/schema.ts';
import { type CreditContext, completePayment, findPayment, type Payment } from './credit.ts';
import {
  closeEvents,
  type EventSubject,
  hasOutcome,
  keepEvent,
  keptEvent,
  unresolvedReturns,
  type Verdict,
} from './event-journal.ts';
import type { CompletedPayment, PaymentEvent, PaymentReport, PaymentReturn } from './provider.ts';

const APPLIED: Verdict = { outcome: 'applied', reason: null };
const WAITING: Verdict = { outcome: 'waiting', reason: null };
const KNOWN: Verdict = { outcome: 'known', reason: null };
const DISMISSED: Verdict = { outcome: 'dismissed', reason: null };

const NO_DOLLAR_AMOUNT = 'its amount is not a whole number of cents in US dollars';

function unresolved(reason: string): Verdict {
  return { outcome: 'unresolved', reason };
}

function irrelevant(reason: string): Verdict {
  return { outcome: 'irrelevant', reason };
}

/**
 * Applies what a provider reports and keeps the event, in one transaction. The balances after a set of events are the
 * same in whatever order and however often they come, also when the database has lost the payments that they are
 * about. An event is `unresolved`, and has moved nothing, while nobody can tell whose money it is about. Throws what the
 * database throws.
 */
export function applyPaymentReport(context: CreditContext, provider: string, report: PaymentReport): Verdict {
  const { db, clock } = context;
  return transact(db, () => {
    if (keptEvent(db, report.event_id, provider)?.outcome === 'dismissed') return DISMISSED;
    const verdict = apply(context, provider, report.event);
    keepEvent(db, provider, report, verdict, clock.now_ms());
    return verdict;
  });
}

function apply(context: CreditContext, provider: string, event: PaymentEvent): Verdict {
  switch (event.kind) {
    case 'completed':
      return applyCompleted(context, provider, event);
    case 'canceled':
      return applyCanceled(context, provider, event.external_id);
    case 'refunded':
    case 'refund_reversed':
      return applyReturn(context, provider, event);
    case 'irrelevant':
      return irrelevant(event.reason);
    case 'unreadable':
      return unresolved(event.reason);
  }
}

function applyCompleted(context: CreditContext, provider: string, event: CompletedPayment): Verdict {
  const { external_id, amount_micros } = event;
  const payment = findPayment(context, provider, external_id);
  if (payment?.status === 'completed') return KNOWN;
  if (isDismissed(context, provider, { ...event, payment_external_id: external_id })) return DISMISSED;
  const entered = payment ?? enterUnknown(context, provider, event);
  if ('outcome' in entered) return entered;
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  settleCompleted(context, { ...entered, amount_micros });
  return APPLIED;
}

/**
 * Completes a payment of that amount, then what came before it: its refunds and reversals. To be called inside a
 * transaction.
 */
export function settleCompleted(context: CreditContext, payment: Payment): void {
  const { db, clock } = context;
  const { provider, external_id } = payment;
  completePayment(context, payment);
  const subject = { kind: 'completed', external_id, payment_external_id: external_id } as const;
  closeEvents(db, provider, subject, 'applied', clock.now_ms());
  for (const { kind, external_id: id, amount_micros } of unresolvedReturns(db, provider, external_id)) {
    if ((kind !== 'refunded' && kind !== 'refund_reversed') || id === null || amount_micros === null)
      continue;
    // Paddle reports a refund more than once: as created, and as updated.
    if (findPayment(context, provider, id) === undefined)
      enterReturn(context, payment, { kind, external_id: id, amount_micros });
  }
  settleReturns(context, payment.id);
}

/**
 * The row of a payment that this database does not know, made from the order that the event names; or why nobody can
 * tell whose credit it is. A customer who can open a checkout of the same account chooses what the order says, so only
 * what was paid for the product of credit counts.
 */
function enterUnknown(context: CreditContext, provider: string, event: CompletedPayment): Payment | Verdict {
  const { external_id, amount_micros, order, sold } = event;
  if (order === null) {
    return sold === 'other' ? irrelevant('it sold something else') : unresolved('it names no order of ours');
  }
  if (sold !== 'credit') return unresolved('it did not sell credit alone');
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  if (order.amount_micros !== null && amount_micros > order.amount_micros)
    return unresolved('more was paid than was ordered');
  if (!organizationExists(context, order.organization_id))
    return unresolved('its organization does not exist');
  if (!isFree(context, order.payment_id)) return unresolved('its order belongs to another payment');
  return enterPayment(context, { ...order, provider, external_id, amount_micros, kind: 'top_up' });
}

function organizationExists({ db }: CreditContext, organization_id: string): boolean {
  const columns = { id: organizations.id };
  const found = db.select(columns).from(organizations).where(eq(organizations.id, organization_id)).get();
  return found !== undefined;
}

/** Whether no payment has this id. */
export function isFree({ db }: CreditContext, payment_id: string): boolean {
  return db.select({ id: payments.id }).from(payments).where(eq(payments.id, payment_id)).get() === undefined;
}

/** A pending payment that the provider's event alone has told of. To be called inside a transaction. */
export function enterPayment(
  context: CreditContext,
  given: Pick<Payment, 'organization_id' | 'provider' | 'external_id' | 'amount_micros' | 'kind'> & {
    readonly payment_id: string;
  },
): Payment {
  const { organization_id, provider, external_id, amount_micros, kind, payment_id } = given;
  return context.db
    .insert(payments)
    .values({
      id: payment_id,
      organization_id,
      provider,
      external_id,
      kind,
      amount_micros,
      status: 'pending',
      created_at_ms: context.clock.now_ms(),
    })
    .returning()
    .get();
}

function applyCanceled(context: CreditContext, provider: string, external_id: string): Verdict {
  const payment = findPayment(context, provider, external_id);
  if (payment === undefined) return irrelevant('it cancels a payment that is not known here');
  if (payment.status !== 'pending') return KNOWN;
  context.db
    .update(payments)
    .set({ status: 'canceled', settled_at_ms: context.clock.now_ms() })
    .where(eq(payments.id, payment.id))
    .run();
  return APPLIED;
}

function applyReturn(context: CreditContext, provider: string, event: PaymentReturn): Verdict {
  const { external_id, payment_external_id, amount_micros } = event;
  const known = findPayment(context, provider, external_id);
  if (known !== undefined) return known.status === 'pending' ? WAITING : KNOWN;
  if (isDismissed(context, provider, event)) return DISMISSED;
  const payment = findPayment(context, provider, payment_external_id);
  if (payment === undefined) {
    const paid = { kind: 'completed', external_id: payment_external_id, payment_external_id } as const;
    return hasOutcome(context.db, provider, paid, ['irrelevant', 'dismissed'])
      ? irrelevant('its payment brought no credit')
      : unresolved('its payment is not known here');
  }
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  enterReturn(context, payment, { ...event, amount_micros });
  settleReturns(context, payment.id);
  return findPayment(context, provider, external_id)?.status === 'completed' ? APPLIED : WAITING;
}

/** Whether the operator has said that this very payment or refund moves nothing here. */
function isDismissed({ db }: CreditContext, provider: string, subject: EventSubject): boolean {
  return hasOutcome(db, provider, subject, ['dismissed']);
}

/** Makes the pending row of a refund or reversal of a payment. To be called inside a transaction. */
export function enterReturn(
  { db, clock, identifiers }: CreditContext,
  payment: Payment,
  event: Pick<PaymentReturn, 'kind' | 'external_id'> & { readonly amount_micros: number },
): void {
  const { provider, organization_id } = payment;
  const { kind, external_id, amount_micros } = event;
  db.insert(payments)
    .values({
      id: identifiers.id('payment'),
      organization_id,
      provider,
      external_id,
      kind: kind === 'refunded' ? 'refund' : 'top_up',
      amount_micros,
      status: 'pending',
      refunds_payment_id: payment.id,
      created_at_ms: clock.now_ms(),
    })
    .run();
  const subject = { kind, external_id, payment_external_id: payment.external_id };
  closeEvents(db, provider, subject, 'waiting', clock.now_ms());
}

/**
 * Settles what waits on a payment, as far as it can be: never more is refunded than was paid, never more reversed than
 * was refunded. Settling one can make way for another, so it goes on until none fits. What fits only together (a large
 * chargeback, and its reversal, that came after a refund that they preceded) is settled together. To be called inside a
 * transaction.
 */
export function settleReturns(context: CreditContext, payment_id: string): void {
  const payment = context.db.select().from(payments).where(eq(payments.id, payment_id)).get();
  if (payment?.status !== 'completed') return;
  const returns = context.db
    .select()
    .from(payments)
    .where(eq(payments.refunds_payment_id, payment_id))
    .orderBy(asc(payments.created_at_ms), asc(payments.id))
    .all();
  let refunded = refundedBy(returns.filter((row) => row.status === 'completed'));
  let waiting = returns.filter((row) => row.status === 'pending');
  const fits = (total: number) => total >= 0 && total <= payment.amount_micros;
  const settle = (row: Payment) => {
    completePayment(context, row);
    const { provider, external_id, kind } = row;
    const subject = { kind: kind === 'refund' ? 'refunded' : 'refund_reversed', external_id } as const;
    const about = { ...subject, payment_external_id: payment.external_id };
    closeEvents(context.db, provider, about, 'applied', context.clock.now_ms());
    refunded += refundedBy([row]);
    waiting = waiting.filter((other) => other.id !== row.id);
  };
  for (;;) {
    const next = waiting.find((row) => fits(refunded + refundedBy([row])));
    if (next === undefined) break;
    settle(next);
  }
  if (!fits(refunded + refundedBy(waiting))) return;
  for (const reversal of waiting.filter((row) => row.kind === 'top_up')) settle(reversal);
  for (const refund of waiting) settle(refund);
}

/** What refunds and reversals of a payment take back of it in all. */
function refundedBy(returns: readonly Payment[]): number {
  return returns.reduce(
    (sum, row) => sum + (row.kind === 'refund' ? row.amount_micros : -row.amount_micros),
    0,
  );
}
