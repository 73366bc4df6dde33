import type { AccountContext } from '../accounts/context.ts';
import { inTransaction, type Transaction } from '../accounts/transaction.ts';
import { completePayment, PENDING } from './credit.ts';
import { closeEvents, keepEvent, unresolvedReturns, type Verdict } from './event-journal.ts';
import type { EventSubject, Payment } from './payment-records.ts';
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
 * Applies what a provider reports and keeps the event, in one transaction. The balances after a set of events do not
 * depend on their order or on how often each comes. That holds even when the database has lost the payments that they
 * are about. An event is `unresolved`, and has moved nothing, while nobody can tell whose money it is about. Rejects
 * with what the store rejects with.
 */
export function applyPaymentReport(
  context: AccountContext,
  provider: string,
  report: PaymentReport,
): Promise<Verdict> {
  return inTransaction(context, async (transaction) => {
    const { payments } = transaction.records;
    const kept = await payments.findEvent(report.event_id, provider);
    if (kept?.outcome === 'dismissed') return DISMISSED;
    const verdict = await apply(transaction, provider, report.event);
    await keepEvent(payments, provider, report, verdict, transaction.clock.now_ms());
    return verdict;
  });
}

async function apply(transaction: Transaction, provider: string, event: PaymentEvent): Promise<Verdict> {
  switch (event.kind) {
    case 'completed':
      return await applyCompleted(transaction, provider, event);
    case 'canceled':
      return await applyCanceled(transaction, provider, event.external_id);
    case 'refunded':
    case 'refund_reversed':
      return await applyReturn(transaction, provider, event);
    case 'irrelevant':
      return irrelevant(event.reason);
    case 'unreadable':
      return unresolved(event.reason);
  }
}

async function applyCompleted(
  transaction: Transaction,
  provider: string,
  event: CompletedPayment,
): Promise<Verdict> {
  const { external_id, amount_micros } = event;
  const payment = await transaction.records.payments.findExternalPayment(provider, external_id);
  if (payment?.status === 'completed') return KNOWN;
  const subject = { ...event, payment_external_id: external_id };
  if (await isDismissed(transaction, provider, subject)) return DISMISSED;
  const entered = payment ?? (await enterUnknown(transaction, provider, event));
  if ('outcome' in entered) return entered;
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  await settleCompleted(transaction, { ...entered, amount_micros });
  return APPLIED;
}

/** Completes a payment of that amount, then what came before it: its refunds and reversals. */
export async function settleCompleted(transaction: Transaction, payment: Payment): Promise<void> {
  const { payments } = transaction.records;
  const { provider, external_id } = payment;
  await completePayment(transaction, payment);
  const subject = { kind: 'completed', external_id, payment_external_id: external_id } as const;
  await closeEvents(payments, provider, subject, 'applied', transaction.clock.now_ms());
  for (const event of await unresolvedReturns(payments, provider, external_id)) {
    const { kind, external_id: id, amount_micros } = event;
    if ((kind !== 'refunded' && kind !== 'refund_reversed') || id === null || amount_micros === null)
      continue;
    // Paddle reports a refund more than once: as created, and as updated.
    if ((await payments.findExternalPayment(provider, id)) === undefined)
      await enterReturn(transaction, payment, { kind, external_id: id, amount_micros });
  }
  await settleReturns(transaction, payment.id);
}

/**
 * The row of a payment that the store does not know, made from the order that the event names; or why its owner is
 * unknown. Customers who can open a checkout of the same account choose what the order says. So only payments for the
 * product of credit count.
 */
async function enterUnknown(
  transaction: Transaction,
  provider: string,
  event: CompletedPayment,
): Promise<Payment | Verdict> {
  const { accounts, payments } = transaction.records;
  const { external_id, amount_micros, order, sold } = event;
  if (order === null) {
    return sold === 'other' ? irrelevant('it sold something else') : unresolved('it names no order of ours');
  }
  if (sold !== 'credit') return unresolved('it did not sell credit alone');
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  if (order.amount_micros !== null && amount_micros > order.amount_micros)
    return unresolved('more was paid than was ordered');
  if ((await accounts.findOrganization(order.organization_id)) === undefined)
    return unresolved('its organization does not exist');
  if ((await payments.findPayment(order.payment_id)) !== undefined)
    return unresolved('its order belongs to another payment');
  return await enterPayment(transaction, { ...order, provider, external_id, amount_micros });
}

/** Enters a pending payment that the provider's event alone has told of. */
export async function enterPayment(
  { records, clock }: Transaction,
  given: Pick<Payment, 'organization_id' | 'provider' | 'external_id' | 'amount_micros'> & {
    readonly payment_id: string;
  },
): Promise<Payment> {
  const { organization_id, provider, external_id, amount_micros, payment_id } = given;
  const payment: Payment = {
    ...PENDING,
    id: payment_id,
    organization_id,
    provider,
    external_id,
    kind: 'top_up',
    amount_micros,
    created_at_ms: clock.now_ms(),
  };
  await records.payments.insertPayment(payment);
  return payment;
}

async function applyCanceled(
  { records: { payments }, clock }: Transaction,
  provider: string,
  external_id: string,
): Promise<Verdict> {
  const payment = await payments.findExternalPayment(provider, external_id);
  if (payment === undefined) return irrelevant('it cancels a payment that is not known here');
  if (payment.status !== 'pending') return KNOWN;
  const { id, amount_micros } = payment;
  await payments.settlePayment(id, { status: 'canceled', amount_micros, settled_at_ms: clock.now_ms() });
  return APPLIED;
}

async function applyReturn(
  transaction: Transaction,
  provider: string,
  event: PaymentReturn,
): Promise<Verdict> {
  const { payments } = transaction.records;
  const { external_id, payment_external_id, amount_micros } = event;
  const known = await payments.findExternalPayment(provider, external_id);
  if (known !== undefined) return known.status === 'pending' ? WAITING : KNOWN;
  if (await isDismissed(transaction, provider, event)) return DISMISSED;
  const payment = await payments.findExternalPayment(provider, payment_external_id);
  if (payment === undefined) {
    const paid = { kind: 'completed', external_id: payment_external_id, payment_external_id } as const;
    return (await payments.hasEvent(provider, paid, ['irrelevant', 'dismissed']))
      ? irrelevant('its payment brought no credit')
      : unresolved('its payment is not known here');
  }
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  await enterReturn(transaction, payment, { ...event, amount_micros });
  await settleReturns(transaction, payment.id);
  const entered = await payments.findExternalPayment(provider, external_id);
  return entered?.status === 'completed' ? APPLIED : WAITING;
}

/** Whether the operator has said that this very payment or refund moves nothing here. */
function isDismissed({ records }: Transaction, provider: string, subject: EventSubject): Promise<boolean> {
  return records.payments.hasEvent(provider, subject, ['dismissed']);
}

/** Enters the pending refund or reversal of a payment. */
export async function enterReturn(
  { records: { payments }, clock, identifiers }: Transaction,
  payment: Payment,
  event: Pick<PaymentReturn, 'kind' | 'external_id'> & { readonly amount_micros: number },
): Promise<void> {
  const { provider, organization_id } = payment;
  const { kind, external_id, amount_micros } = event;
  await payments.insertPayment({
    ...PENDING,
    id: identifiers.id('payment'),
    organization_id,
    provider,
    external_id,
    kind: kind === 'refunded' ? 'refund' : 'top_up',
    amount_micros,
    refunds_payment_id: payment.id,
    created_at_ms: clock.now_ms(),
  });
  const subject = { kind, external_id, payment_external_id: payment.external_id };
  await closeEvents(payments, provider, subject, 'waiting', clock.now_ms());
}

/**
 * Settles what waits on a payment, as far as it can be: never more is refunded than was paid, never more reversed than
 * was refunded. Settling one can make way for another, so it goes on until none fits. What fits only together (a large
 * chargeback, and its reversal, that came after a refund that they preceded) is settled together.
 */
export async function settleReturns(transaction: Transaction, payment_id: string): Promise<void> {
  const { payments } = transaction.records;
  const payment = await payments.findPayment(payment_id);
  if (payment?.status !== 'completed') return;
  const returns = await payments.returnsOf(payment_id);
  let refunded = refundedBy(returns.filter((row) => row.status === 'completed'));
  let waiting = returns.filter((row) => row.status === 'pending');
  const fits = (total: number) => total >= 0 && total <= payment.amount_micros;
  const settle = async (row: Payment) => {
    await completePayment(transaction, row);
    const { provider, external_id, kind } = row;
    const subject = { kind: kind === 'refund' ? 'refunded' : 'refund_reversed', external_id } as const;
    const about = { ...subject, payment_external_id: payment.external_id };
    await closeEvents(payments, provider, about, 'applied', transaction.clock.now_ms());
    refunded += refundedBy([row]);
    waiting = waiting.filter((other) => other.id !== row.id);
  };
  for (;;) {
    const next = waiting.find((row) => fits(refunded + refundedBy([row])));
    if (next === undefined) break;
    await settle(next);
  }
  if (!fits(refunded + refundedBy(waiting))) return;
  for (const reversal of waiting.filter((row) => row.kind === 'top_up')) await settle(reversal);
  for (const refund of waiting) await settle(refund);
}

/** What refunds and reversals of a payment take back of it in all. */
function refundedBy(returns: readonly Payment[]): number {
  return returns.reduce(
    (sum, row) => sum + (row.kind === 'refund' ? row.amount_micros : -row.amount_micros),
    0,
  );
}
