import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { AccountError } from '../access/errors.ts';
import { requireOperator } from '../access/permissions.ts';
import { readOrganization } from '../accounts/organizations.ts';
import { inTransaction, type Transaction } from '../accounts/transaction.ts';
import { recordAct } from '../audit-log/record.ts';
import type { KeptEvent, Payment } from '../store/payment-records.ts';
import { enterPayment, enterReturn, settleCompleted, settleReturns } from './apply-event.ts';
import { requireAmount } from './credit.ts';
import { resolveEvent, unresolvedReturns } from './event-journal.ts';

/**
 * Returns the stored payment events, newest first: the unresolved ones, or all (operator only). Rejects with
 * `permission_denied`.
 */
export async function listPaymentEvents(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  given: { readonly unresolved_only: boolean; readonly limit: number },
): Promise<KeptEvent[]> {
  requireOperator(actor);
  return await store.payments.listEvents(given.limit, given.unresolved_only ? 'unresolved' : undefined);
}

interface Assignment {
  readonly event_id: string;
  readonly organization_id: string;
  /** The amount of an event that has none in US dollars. */
  readonly amount_micros?: number | undefined;
}

/**
 * Applies an unresolved event to the organization that the operator names. A refund goes to the owner of its
 * payment, which must be known first. Rejects with `permission_denied`, `not_found`, `event_resolved`,
 * `event_not_assignable`, `invalid_amount`.
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
    const event = await readUnresolved(transaction, given.event_id);
    const { kind, external_id } = event;
    const amount_micros = worthOf(event, given.amount_micros);
    await resolveEvent(records.payments, event, { outcome: 'assigned', organization_id }, clock.now_ms());
    if (kind === 'completed') {
      const payment = await paymentOf(transaction, event, organization_id, amount_micros);
      await settleCompleted(transaction, { ...payment, amount_micros });
    } else if ((kind === 'refunded' || kind === 'refund_reversed') && external_id !== null) {
      const payment = await paymentReturned(transaction, event, organization_id);
      await enterReturn(transaction, payment, { kind, external_id, amount_micros });
      await settleReturns(transaction, payment.id);
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
 * Dismisses an unresolved event: it moves nothing, now or when it is repeated, and neither do the refunds of
 * such a payment (operator only). Rejects with `permission_denied`, `not_found`, `event_resolved`.
 */
export async function dismissPaymentEvent(
  context: AccountContext,
  actor: Actor,
  event_id: string,
): Promise<KeptEvent> {
  requireOperator(actor);
  return await inTransaction(context, async (transaction) => {
    const { records, clock } = transaction;
    const event = await readUnresolved(transaction, event_id);
    const { provider, external_id } = event;
    const returns =
      event.kind === 'completed' && external_id !== null
        ? await unresolvedReturns(records.payments, provider, external_id)
        : [];
    for (const each of [event, ...returns])
      await resolveEvent(records.payments, each, { outcome: 'dismissed' }, clock.now_ms());
    await recordAct(records, context, actor, {
      action: 'payment_event.dismiss',
      organization_id: null,
      object_id: event_id,
      detail: { kind: event.kind },
    });
    return await readEvent(transaction, event_id);
  });
}

async function readEvent({ records }: Transaction, event_id: string): Promise<KeptEvent> {
  const event = await records.payments.findEvent(event_id);
  if (event === undefined) throw new AccountError('not_found', 'There is no such payment event.');
  return event;
}

async function readUnresolved(transaction: Transaction, event_id: string): Promise<KeptEvent> {
  const event = await readEvent(transaction, event_id);
  if (event.outcome !== 'unresolved') throw new AccountError('event_resolved');
  return event;
}

/** Returns the amount of the event, or else the operator's. */
function worthOf(event: KeptEvent, given_micros: number | undefined): number {
  if (event.amount_micros !== null && given_micros !== undefined && given_micros !== event.amount_micros)
    throw new AccountError('invalid_amount', 'The event has an amount of its own: leave yours out.');
  const amount_micros = event.amount_micros ?? given_micros;
  if (amount_micros === undefined)
    throw new AccountError('invalid_amount', 'The event has no amount in US dollars: give one.');
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

function requireOwner(payment: Payment, organization_id: string): Payment {
  if (payment.organization_id !== organization_id) {
    throw new AccountError(
      'event_not_assignable',
      `Its payment belongs to the organization ${payment.organization_id}.`,
    );
  }
  return payment;
}
