import type { AccountContext } from '../access/context.ts';
import { inTransaction, type Transaction } from '../accounts/transaction.ts';
import type { EventSubject, Payment } from '../store/payment-records.ts';
import { completePayment, PENDING } from './credit.ts';
import { closeEvents, keepEvent, unresolvedReturns, type Verdict } from './event-journal.ts';
import type { CompletedPayment, NamedOrder, PaymentEvent, PaymentReport, PaymentReturn } from './provider.ts';

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
 * Applies a provider's report and keeps the event, in one transaction. The resulting balances do not depend
 * on the order of events or on repeats. That holds even when the database has lost the payments that they
 * refer to. An event whose owner is unknown is `unresolved` and moves nothing. Rejects as the store does.
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
  const { external_id, amount_micros, order, sold } = event;
  const payment = await transaction.records.payments.findExternalPayment(provider, external_id);
  if (payment?.status === 'completed') return KNOWN;
  const subject = { ...event, payment_external_id: external_id };
  if (await isDismissed(transaction, provider, subject)) return DISMISSED;
  const ordered = payment ?? order;
  if (ordered === null) {
    return sold === 'other' ? irrelevant('it sold something else') : unresolved('it names no order of ours');
  }
  // Customers with another checkout of the account choose what the order says, and can add to one of ours.
  if (sold !== 'credit') return unresolved('it did not sell credit alone');
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  // Tax is on top of both amounts, and a discount only makes what was paid less.
  if (ordered.amount_micros !== null && amount_micros > ordered.amount_micros)
    return unresolved('more was paid than was ordered');
  const paid = { provider, external_id, amount_micros };
  const entered = 'payment_id' in ordered ? await enterUnknown(transaction, ordered, paid) : ordered;
  if ('outcome' in entered) return entered;
  await settleCompleted(transaction, { ...entered, amount_micros });
  return APPLIED;
}

/** Completes a payment of that amount, then applies its refunds and reversals that came before it. */
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
    // Paddle reports a refund more than once: when it is created, and when it is updated.
    if ((await payments.findExternalPayment(provider, id)) === undefined)
      await enterReturn(transaction, payment, { kind, external_id: id, amount_micros });
  }
  await settleReturns(transaction, payment.id);
}

/** Enters a payment that the store does not know, by its order; or returns why its owner is unknown. */
async function enterUnknown(
  transaction: Transaction,
  order: NamedOrder,
  paid: Pick<Payment, 'provider' | 'external_id' | 'amount_micros'>,
): Promise<Payment | Verdict> {
  const { accounts, payments } = transaction.records;
  if ((await accounts.findOrganization(order.organization_id)) === undefined)
    return unresolved('its organization does not exist');
  if ((await payments.findPayment(order.payment_id)) !== undefined)
    return unresolved('its order belongs to another payment');
  return await enterPayment(transaction, { ...order, ...paid });
}

/** Enters a pending payment that is known only from the provider's event. */
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
  if (await isDismissed(transaction, provider, event)) return DISMISSED;
  const known = await payments.findExternalPayment(provider, external_id);
  if (known !== undefined) return known.status === 'pending' ? WAITING : KNOWN;
  const payment = await payments.findExternalPayment(provider, payment_external_id);
  if (payment?.status !== 'completed') {
    const paid = { kind: 'completed', external_id: payment_external_id, payment_external_id } as const;
    if (await payments.hasEvent(provider, paid, ['irrelevant', 'dismissed']))
      return irrelevant('its payment brought no credit');
  }
  if (payment === undefined) return unresolved('its payment is not known here');
  if (amount_micros === null) return unresolved(NO_DOLLAR_AMOUNT);
  const settled = await applyKnownReturn(transaction, payment, { ...event, amount_micros });
  return settled ? APPLIED : WAITING;
}

/** Returns true if the operator has dismissed this very payment or refund. */
function isDismissed({ records }: Transaction, provider: string, subject: EventSubject): Promise<boolean> {
  return records.payments.hasEvent(provider, subject, ['dismissed']);
}

/** Enters a refund or reversal of a payment, and settles what is possible. Resolves with true if it is settled. */
export async function applyKnownReturn(
  transaction: Transaction,
  payment: Payment,
  event: EnteredReturn,
): Promise<boolean> {
  await enterReturn(transaction, payment, event);
  await settleReturns(transaction, payment.id);
  const entered = await transaction.records.payments.findExternalPayment(payment.provider, event.external_id);
  return entered?.status === 'completed';
}

type EnteredReturn = Pick<PaymentReturn, 'kind' | 'external_id'> & { readonly amount_micros: number };

/** Enters the pending refund or reversal of a payment. */
async function enterReturn(
  { records: { payments }, clock, identifiers }: Transaction,
  payment: Payment,
  event: EnteredReturn,
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
 * Settles the waiting refunds and reversals of a payment, as far as possible: refunds never exceed the
 * payment, reversals never the refunds. Settling one can make another possible, so it repeats until none is.
 * Those that are possible only together are settled together, such as a late large chargeback and its
 * reversal.
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

/** Returns the amount that the refunds, less the reversals, take back. */
function refundedBy(returns: readonly Payment[]): number {
  return returns.reduce(
    (sum, row) => sum + (row.kind === 'refund' ? row.amount_micros : -row.amount_micros),
    0,
  );
}
