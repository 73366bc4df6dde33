import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { CENT_MICROS } from '../contract/money.ts';
import type { NamedOrder, PaymentEvent, PaymentReport } from './provider.ts';

/** The only currency that credit is sold in. */
export const PADDLE_CURRENCY = 'USD';

const ID_LENGTH_MAX = 100;
/** An id of Paddle: about 30 characters. A longer text is not an id and must not be kept. */
export const PaddleId = Type.String({ minLength: 1, maxLength: ID_LENGTH_MAX });

/** Only the fields in use, so that Paddle can add or drop others without the loss of a payment. */
const Notification = Type.Object({
  event_id: PaddleId,
  event_type: PaddleId,
  occurred_at: Type.Optional(Type.Unknown()),
  data: Type.Record(Type.String(), Type.Unknown()),
});
const Identified = Type.Object({ id: PaddleId });
const Transaction = Type.Object({
  id: PaddleId,
  custom_data: Type.Optional(Type.Unknown()),
  items: Type.Optional(Type.Unknown()),
  details: Type.Optional(Type.Unknown()),
});
const TransactionDetails = Type.Object({
  totals: Type.Object({
    subtotal: Type.String(),
    discount: Type.Optional(Type.String()),
    currency_code: Type.String(),
  }),
});
const Items = Type.Array(Type.Object({ price: Type.Object({ product_id: Type.String() }) }), { minItems: 1 });
const Adjustment = Type.Object({
  id: PaddleId,
  action: PaddleId,
  status: PaddleId,
  transaction_id: PaddleId,
  totals: Type.Optional(Type.Unknown()),
});
const AdjustmentTotals = Type.Object({ subtotal: Type.String(), currency_code: Type.String() });
/**
 * The custom data that `createCheckout` attaches to a transaction. Any other may be personal and is ignored.
 */
const CustomData = Type.Object({
  payment_id: Type.String({ pattern: '^pay_\\w{1,64}$' }),
  organization_id: Type.String({ pattern: '^org_\\w{1,64}$' }),
  amount_micros: Type.Optional(Type.Integer({ minimum: 1 })),
});

/**
 * Reads the event of a genuine notification; `product_id` is the product of credit. Returns null when the
 * body is not JSON or not a notification, so that nothing of it can be stored.
 */
export function readNotification(body: Uint8Array, product_id: string): PaymentReport | null {
  const notification = valueMatching(Notification, parse(body));
  if (notification === null) return null;
  const { event_id, event_type, occurred_at, data } = notification;
  const occurred_at_ms = typeof occurred_at === 'string' ? Date.parse(occurred_at) : Number.NaN;
  return {
    event_id,
    type: event_type,
    occurred_at_ms: Number.isNaN(occurred_at_ms) ? null : occurred_at_ms,
    event: readEvent(event_type, data, product_id),
  };
}

function readEvent(type: string, data: unknown, product_id: string): PaymentEvent {
  switch (type) {
    case 'transaction.completed':
      return readCompleted(data, product_id);
    case 'transaction.canceled': {
      const external_id = idOf(data);
      return external_id === null ? unreadable(data) : { kind: 'canceled', external_id };
    }
    case 'adjustment.created':
    case 'adjustment.updated':
      return readAdjustment(data);
    default:
      return irrelevant(idOf(data), `${type} does not move credit`);
  }
}

function readCompleted(data: unknown, product_id: string): PaymentEvent {
  const transaction = valueMatching(Transaction, data);
  if (transaction === null) return unreadable(data);
  const totals = valueMatching(TransactionDetails, transaction.details)?.totals;
  const amount_micros = totals === undefined ? null : amountOf(totals, totals.discount);
  if (amount_micros !== null && amount_micros <= 0) return irrelevant(transaction.id, 'nothing was paid');
  return {
    kind: 'completed',
    external_id: transaction.id,
    amount_micros,
    order: readOrder(transaction.custom_data),
    sold: whatWasSold(transaction.items, product_id),
  };
}

/**
 * Reads an adjustment. An approved refund or a chargeback returns money to the customer, and a chargeback's
 * reversal brings it back; each is an adjustment of its own. A chargeback marked `reversed` adds nothing to
 * its reversal.
 */
function readAdjustment(data: unknown): PaymentEvent {
  const adjustment = valueMatching(Adjustment, data);
  if (adjustment === null) return unreadable(data);
  const { id, action, status, transaction_id } = adjustment;
  const moves = action === 'refund' || action === 'chargeback' || action === 'chargeback_reverse';
  if (!moves || status !== 'approved') return irrelevant(id, `a ${action} that is ${status}`);
  const totals = valueMatching(AdjustmentTotals, adjustment.totals);
  const amount_micros = totals === null ? null : amountOf(totals);
  if (amount_micros !== null && amount_micros <= 0) return irrelevant(id, 'no amount without tax');
  return {
    kind: action === 'chargeback_reverse' ? 'refund_reversed' : 'refunded',
    external_id: id,
    payment_external_id: transaction_id,
    amount_micros,
  };
}

function readOrder(custom_data: unknown): NamedOrder | null {
  const order = valueMatching(CustomData, custom_data);
  return order === null ? null : { ...order, amount_micros: order.amount_micros ?? null };
}

function whatWasSold(given: unknown, product_id: string): 'credit' | 'other' | 'unknown' {
  const items = valueMatching(Items, given);
  if (items === null) return 'unknown';
  const isCredit = (item: (typeof items)[number]) => item.price.product_id === product_id;
  if (items.every(isCredit)) return 'credit';
  return items.some(isCredit) ? 'unknown' : 'other';
}

function irrelevant(external_id: string | null, reason: string): PaymentEvent {
  return { kind: 'irrelevant', external_id, reason };
}

function unreadable(data: unknown): PaymentEvent {
  return { kind: 'unreadable', external_id: idOf(data), reason: 'this version cannot read its data' };
}

function idOf(data: unknown): string | null {
  return valueMatching(Identified, data)?.id ?? null;
}

/** Returns the value when it matches the schema, else null. */
export function valueMatching<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> | null {
  return Value.Check(schema, value) ? value : null;
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    // Nothing is lost: the event is reported as unreadable.
    return null;
  }
}

/**
 * Returns the subtotal less the discount; null when it is not in US dollars. Paddle writes cents in a string.
 */
function amountOf(
  totals: { readonly subtotal: string; readonly currency_code: string },
  discount = '0',
): number | null {
  const is_dollars = totals.currency_code === PADDLE_CURRENCY;
  const is_whole = [totals.subtotal, discount].every((cents) => /^\d{1,11}$/.test(cents));
  return is_dollars && is_whole ? (Number(totals.subtotal) - Number(discount)) * CENT_MICROS : null;
}
