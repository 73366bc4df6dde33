import { transact } from '../../db/sqlite/connection.ts';
import type { Actor } from '../accounts/actor.ts';
import { AccountError } from '../accounts/errors.ts';
import { requireOperator } from '../accounts/permissions.ts';
import { readOrganization } from '../accounts/synchronous.ts';
import { enterPayment, enterReturn, isFree, settleCompleted, settleReturns } from './apply-event.ts';
import { type CreditContext, findPayment, type Payment, requireAmount } from './credit.ts';
import { type KeptEvent, keptEvent, keptEvents, resolveEvent, unresolvedReturns } from './event-journal.ts';

/** The payment events that are kept, newest first: those that an operator must look at, or all (operator only). */
export function listPaymentEvents(
  context: CreditContext,
  actor: Actor,
  given: { readonly unresolved_only: boolean; readonly limit: number },
): KeptEvent[] {
  requireOperator(actor);
  return keptEvents(context.db, given);
}

interface Assignment {
  readonly event_id: string;
  readonly organization_id: string;
  /** What the event is worth, where it has no amount in US dollars. */
  readonly amount_micros?: number | undefined;
}

/**
 * The operator's word whose money an unresolved event is about: it is applied to that organization. A refund belongs
 * where its payment is, so the payment has to be known first. Throws `permission_denied`, `not_found`,
 * `event_resolved`, `event_not_assignable`, `invalid_amount`.
 */
export function assignPaymentEvent(context: CreditContext, actor: Actor, given: Assignment): KeptEvent {
  requireOperator(actor);
  return transact(context.db, () => {
    const { id: organization_id } = readOrganization(context, given.organization_id);
    const event = readUnresolved(context, given.event_id);
    const { kind, external_id } = event;
    const amount_micros = worthOf(event, given.amount_micros);
    resolveEvent(context.db, event, { outcome: 'assigned', organization_id }, context.clock.now_ms());
    if (kind === 'completed') {
      const payment = paymentOf(context, event, organization_id, amount_micros);
      settleCompleted(context, { ...payment, amount_micros });
    } else if ((kind === 'refunded' || kind === 'refund_reversed') && external_id !== null) {
      const payment = paymentReturned(context, event, organization_id);
      enterReturn(context, payment, { kind, external_id, amount_micros });
      settleReturns(context, payment.id);
    } else throw new AccountError('event_not_assignable');
    return readEvent(context, given.event_id);
  });
}

/**
 * The operator's word that an unresolved event moves nothing here, now or when it comes again, nor do the refunds of
 * such a payment. Throws `permission_denied`, `not_found`, `event_resolved`.
 */
export function dismissPaymentEvent(context: CreditContext, actor: Actor, event_id: string): KeptEvent {
  requireOperator(actor);
  const { db, clock } = context;
  return transact(db, () => {
    const event = readUnresolved(context, event_id);
    const { provider, external_id } = event;
    const returns =
      event.kind === 'completed' && external_id !== null ? unresolvedReturns(db, provider, external_id) : [];
    for (const each of [event, ...returns]) resolveEvent(db, each, { outcome: 'dismissed' }, clock.now_ms());
    return readEvent(context, event_id);
  });
}

function readEvent({ db }: CreditContext, event_id: string): KeptEvent {
  const event = keptEvent(db, event_id);
  if (event === undefined) throw new AccountError('not_found', 'There is no such payment event.');
  return event;
}

function readUnresolved(context: CreditContext, event_id: string): KeptEvent {
  const event = readEvent(context, event_id);
  if (event.outcome !== 'unresolved') throw new AccountError('event_resolved');
  return event;
}

/** What the event itself says, or else the operator. */
function worthOf(event: KeptEvent, given_micros: number | undefined): number {
  if (event.amount_micros !== null && given_micros !== undefined && given_micros !== event.amount_micros)
    throw new AccountError('invalid_amount', 'The event has an amount of its own: leave yours out.');
  const amount_micros = event.amount_micros ?? given_micros;
  if (amount_micros === undefined)
    throw new AccountError('invalid_amount', 'The event has no amount in US dollars: give one.');
  requireAmount(amount_micros);
  return amount_micros;
}

/** The payment that the event completes: the one that is known, or a new one of this organization. */
function paymentOf(
  context: CreditContext,
  event: KeptEvent,
  organization_id: string,
  amount_micros: number,
): Payment {
  const { provider, external_id, payment_id } = event;
  if (external_id === null) throw new AccountError('event_not_assignable');
  const known = findPayment(context, provider, external_id);
  if (known !== undefined) return requireOwner(known, organization_id);
  const is_free = payment_id !== null && isFree(context, payment_id);
  return enterPayment(context, {
    payment_id: is_free ? payment_id : context.identifiers.id('payment'),
    organization_id,
    provider,
    external_id,
    amount_micros,
    kind: 'top_up',
  });
}

/** The payment that the event takes money back of, or brings it back to. */
function paymentReturned(context: CreditContext, event: KeptEvent, organization_id: string): Payment {
  const { provider, payment_external_id } = event;
  const payment =
    payment_external_id === null ? undefined : findPayment(context, provider, payment_external_id);
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
