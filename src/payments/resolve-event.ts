import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import { readOrganization } from '../accounts/organizations.ts';
import { inTransaction, type Transaction } from '../accounts/transaction.ts';
import { recordAct } from '../audit-log/record.ts';
import { formatDollars } from '../contract/money.ts';
import type { KeptEvent, KeptOutcome, Payment } from '../store/payment-records.ts';
import { applyKnownReturn, enterPayment, settleCompleted, settleReturns } from './apply-event.ts';
import { requireAmount } from './credit.ts';
import { OPEN_OUTCOMES, resolveEvent } from './event-journal.ts';

interface Assignment {
  readonly event_id: string;
  readonly organization_id: string;
  /** The amount of an event that has none in US dollars, or the part of it that is for credit. */
  readonly amount_micros?: number | undefined;
}

/**
 * Applies an unresolved event to the organization that the operator names. A refund goes to the owner of its
 * payment, which must be known first. It is `waiting` while it is more than what is left of that. Rejects with
 * `permission_denied`, `not_found`, `event_resolved`, `event_not_assignable`, `invalid_amount`.
 */
export async function assignPaymentEvent(
  context: AccountContext,
  actor: Actor,
  given: Assignment,
): Promise<KeptEvent> {
  requireOperator(actor);
  return await inTransaction(context, async (transaction) => {
    const { records, clock } = transaction;
    const { id: organization_id } = await readOrganization(records, given.organization_id);
    const event = await readEvent(transaction, given.event_id, ['unresolved']);
    const { kind, external_id } = event;
    const amount_micros = worthOf(event, given.amount_micros);
    const now_ms = clock.now_ms();
    await resolveEvent(records.payments, event, { outcome: 'assigned', organization_id }, now_ms);
    if (kind === 'completed') {
      const payment = await paymentOf(transaction, event, organization_id, amount_micros);
      await settleCompleted(transaction, { ...payment, amount_micros });
    } else if ((kind === 'refunded' || kind === 'refund_reversed') && external_id !== null) {
      const payment = await paymentReturned(transaction, event, organization_id);
      requireFit(payment, amount_micros);
      const is_settled = await applyKnownReturn(transaction, payment, { kind, external_id, amount_micros });
      const waits = { outcome: 'waiting', organization_id } as const;
      if (!is_settled) await resolveEvent(records.payments, event, waits, now_ms, ['assigned']);
    } else throw new AccountError('event_not_assignable');
    await recordAct(records, context, actor, {
      action: 'payment_event.assign',
      organization_id,
      object_id: given.event_id,
      detail: { kind, amount_micros },
    });
    return await readEvent(transaction, given.event_id);
  });
}

/**
 * Dismisses an unresolved or waiting event: it moves nothing, now or when it is repeated, and neither do the
 * refunds of such a payment. Pending ones are canceled (operator only). Rejects with
 * `permission_denied`, `not_found`, `event_resolved`.
 */
export async function dismissPaymentEvent(
  context: AccountContext,
  actor: Actor,
  event_id: string,
): Promise<KeptEvent> {
  requireOperator(actor);
  return await inTransaction(context, async (transaction) => {
    const { records } = transaction;
    const event = await readEvent(transaction, event_id, [...OPEN_OUTCOMES, 'assigned']);
    // An earlier version noted a return that waits as assigned.
    if (event.outcome === 'assigned' && (await pendingOf(transaction, event)) === null)
      throw new AccountError('event_resolved');
    await dismiss(transaction, event);
    const { provider, kind, external_id, payment_external_id } = event;
    if (kind === 'completed' && external_id !== null) {
      for (const outcome of OPEN_OUTCOMES)
        for (const each of await records.payments.returnEvents(provider, external_id, outcome))
          await dismiss(transaction, each);
    } else if (payment_external_id !== null) {
      // Without the canceled one, the others may be possible together.
      const payment = await records.payments.findExternalPayment(provider, payment_external_id);
      if (payment !== undefined) await settleReturns(transaction, payment.id);
    }
    await recordAct(records, context, actor, {
      action: 'payment_event.dismiss',
      organization_id: null,
      object_id: event_id,
      detail: { kind: event.kind },
    });
    return await readEvent(transaction, event_id);
  });
}

/** Dismisses an event, and cancels the payment or return that it is about where that is pending. */
async function dismiss(transaction: Transaction, event: KeptEvent): Promise<void> {
  const { payments } = transaction.records;
  const now_ms = transaction.clock.now_ms();
  await resolveEvent(payments, event, { outcome: 'dismissed' }, now_ms, [event.outcome]);
  const pending = await pendingOf(transaction, event);
  if (pending === null) return;
  const { id, amount_micros } = pending;
  await payments.settlePayment(id, { status: 'canceled', amount_micros, settled_at_ms: now_ms });
}

/** Returns the pending payment or return that an event is about; null for none. */
async function pendingOf(
  { records }: Transaction,
  { provider, kind, external_id }: KeptEvent,
): Promise<Payment | null> {
  const is_about_money = kind === 'completed' || kind === 'refunded' || kind === 'refund_reversed';
  if (!is_about_money || external_id === null) return null;
  const payment = await records.payments.findExternalPayment(provider, external_id);
  return payment?.status === 'pending' ? payment : null;
}

/** Returns the event. Rejects with `not_found`, and with `event_resolved` when its outcome is none of these. */
async function readEvent(
  { records }: Transaction,
  event_id: string,
  outcomes?: readonly KeptOutcome[],
): Promise<KeptEvent> {
  const event = await records.payments.findEvent(event_id);
  if (event === undefined) throw new AccountError('not_found', 'There is no such payment event.');
  if (outcomes?.includes(event.outcome) === false) throw new AccountError('event_resolved');
  return event;
}

/** Returns the operator's amount, or else that of the event, which is the most: the rest was for something else. */
function worthOf(event: KeptEvent, given_micros: number | undefined): number {
  const most_micros = event.amount_micros;
  const amount_micros = given_micros ?? most_micros;
  if (amount_micros === null)
    throw new AccountError('invalid_amount', 'The event has no amount in US dollars: give one.');
  if (most_micros !== null && amount_micros > most_micros)
    throw new AccountError('invalid_amount', 'It is more than the amount of the event.');
  requireAmount(amount_micros);
  return amount_micros;
}

/** Returns the payment that the event completes: the known one, or a new one of this organization. */
async function paymentOf(
  transaction: Transaction,
  event: KeptEvent,
  organization_id: string,
  amount_micros: number,
): Promise<Payment> {
  const { payments } = transaction.records;
  const { provider, external_id, payment_id } = event;
  if (external_id === null) throw new AccountError('event_not_assignable');
  const known = await payments.findExternalPayment(provider, external_id);
  if (known !== undefined) return requireOwner(known, organization_id);
  const is_free = payment_id !== null && (await payments.findPayment(payment_id)) === undefined;
  return await enterPayment(transaction, {
    payment_id: is_free ? payment_id : transaction.identifiers.id('payment'),
    organization_id,
    provider,
    external_id,
    amount_micros,
  });
}

/** Returns the payment of a refund or reversal. */
async function paymentReturned(
  { records }: Transaction,
  event: KeptEvent,
  organization_id: string,
): Promise<Payment> {
  const { provider, payment_external_id } = event;
  const payment =
    payment_external_id === null
      ? undefined
      : await records.payments.findExternalPayment(provider, payment_external_id);
  if (payment === undefined) {
    throw new AccountError(
      'event_not_assignable',
      `The payment ${payment_external_id} is not known here: have the provider send its event again, or dismiss this one.`,
    );
  }
  return requireOwner(payment, organization_id);
}

/** Throws `invalid_amount` for a return that no other return of the payment could make possible. */
function requireFit(payment: Payment, amount_micros: number): void {
  if (payment.status === 'completed' && amount_micros > payment.amount_micros) {
    throw new AccountError(
      'invalid_amount',
      `It is more than its payment of $${formatDollars(payment.amount_micros)}.`,
    );
  }
}

function requireOwner(payment: Payment, organization_id: string): Payment {
  if (payment.organization_id !== organization_id) {
    throw new AccountError(
      'event_not_assignable',
      `Its payment belongs to the organization ${payment.organization_id}.`,
    );
  }
  return payment;
}
