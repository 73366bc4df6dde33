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

/** Signs as Paddle documents it: HMAC-SHA256 over the time, a colon and the raw body. */
export function sign(
  body: string,
  options: { readonly secret?: string; readonly age_s?: number } = {},
): Call {
  const time_s = Math.floor(Date.now() / 1_000) - (options.age_s ?? 0);
  const hash = createHmac('sha256', options.secret ?? SETTINGS.webhook_secret)
    .update(`${time_s}:${body}`)
    .digest('hex');
  return { body, signature: `ts=${time_s};h1=${hash}` };
}

/** The body of a notification in Paddle's form. */
export function notification(event_type: string, data: object): string {
  const occurred_at = '2026-01-15T00:00:00.000000Z';
  return JSON.stringify({ event_id: 'evt_1', notification_id: 'ntf_1', event_type, occurred_at, data });
}

interface TransactionGiven {
  readonly id?: string;
  readonly cents?: string;
  readonly discount?: string;
  readonly currency_code?: string;
}

/** A notification about a transaction of $25 less discount, tax on top. */
export function transaction(event_type: string, given: TransactionGiven = {}): string {
  const { id = 'txn_1', cents = '2500', discount = '0', currency_code = 'USD' } = given;
  return notification(event_type, {
    id,
    status: 'completed',
    currency_code,
    items: [],
    payments: [],
    details: {
      tax_rates_used: [],
      line_items: [],
      totals: { subtotal: cents, discount, tax: '475', total: '2975', currency_code },
    },
  });
}
