import { createHmac } from 'node:crypto';
import type { PaddleSettings } from '../../src/payments/paddle.ts';

/** Settings of a Paddle account that exists in tests only. */
export const SETTINGS: PaddleSettings = {
  api_key: 'pdl_test',
  webhook_secret: 'pdl_ntfset_secret',
  product_id: 'pro_1',
  environment: 'sandbox',
};

/** A webhook call as it would come. */
export interface Call {
  readonly body: string;
  readonly signature: string | null;
}

export interface SignOptions {
  readonly secret?: string;
  /** How long ago the call was signed, from `now_ms`. */
  readonly age_s?: number;
  readonly now_ms?: number;
}

/** The hash that Paddle documents: HMAC-SHA256 over the time, a colon and the raw body. */
export function hashOf(time_s: number, body: string | Uint8Array, secret = SETTINGS.webhook_secret): string {
  return createHmac('sha256', secret).update(`${time_s}:`).update(body).digest('hex');
}

/** Signs as Paddle does. */
export function sign(body: string, { secret, age_s = 0, now_ms = Date.now() }: SignOptions = {}): Call {
  const time_s = Math.floor(now_ms / 1_000) - age_s;
  return { body, signature: `ts=${time_s};h1=${hashOf(time_s, body, secret)}` };
}

/** The body of a notification in Paddle's form. Every delivery of an event has its id, and other events have others. */
export function notification(event_type: string, data: object): string {
  const event_id = `evt_${Bun.hash(event_type + JSON.stringify(data)).toString(36)}`;
  const occurred_at = '2026-01-15T00:00:00.000000Z';
  return JSON.stringify({ event_id, notification_id: 'ntf_1', event_type, occurred_at, data });
}

/** The id of the event in a body that `notification` made. */
export function eventId(body: string): string {
  const { event_id } = JSON.parse(body);
  return event_id;
}

interface TransactionGiven {
  readonly id?: string;
  readonly cents?: string;
  readonly discount?: string;
  readonly currency_code?: string;
  readonly product_ids?: readonly string[];
  readonly custom_data?: unknown;
}

/** A notification about a transaction of $25 of credit less discount, tax on top. */
export function transaction(event_type: string, given: TransactionGiven = {}): string {
  const { id = 'txn_1', cents = '2500', discount = '0', currency_code = 'USD' } = given;
  const { product_ids = [SETTINGS.product_id], custom_data = null } = given;
  return notification(event_type, {
    id,
    status: 'completed',
    currency_code,
    custom_data,
    items: product_ids.map((product_id) => ({ quantity: 1, price: { id: 'pri_1', product_id } })),
    payments: [],
    details: {
      tax_rates_used: [],
      line_items: [],
      totals: { subtotal: cents, discount, tax: '475', total: '2975', currency_code },
    },
  });
}

interface AdjustmentGiven {
  readonly id?: string;
  readonly transaction_id?: string;
  readonly action?: string;
  readonly status?: string;
  readonly cents?: string;
  readonly currency_code?: string;
}

/** A notification about money of a transaction that goes back, or returns from there. */
export function adjustment(event_type: string, given: AdjustmentGiven = {}): string {
  const { id = 'adj_1', transaction_id = 'txn_1', action = 'refund', status = 'approved' } = given;
  const { cents = '1000', currency_code = 'USD' } = given;
  return notification(event_type, {
    id,
    action,
    transaction_id,
    status,
    currency_code,
    items: [],
    totals: { subtotal: cents, tax: '190', total: '1190', currency_code },
  });
}
