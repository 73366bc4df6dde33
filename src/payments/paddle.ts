import { Type } from '@sinclair/typebox';
import { CENT_MICROS } from '../contract/money.ts';
import { PADDLE_CURRENCY, PaddleId, readNotification, valueMatching } from './paddle-events.ts';
import { ageSeconds, isSignedBy, isWithinTolerance, parseSignature } from './paddle-signature.ts';
import {
  type Checkout,
  type Order,
  type PaymentProvider,
  PaymentProviderFailed,
  type Webhook,
  type WebhookCall,
} from './provider.ts';

const PADDLE_PROVIDER_NAME = 'paddle';
const SIGNATURE_HEADER = 'paddle-signature';

const API_ADDRESSES = {
  production: 'https://api.paddle.com',
  sandbox: 'https://sandbox-api.paddle.com',
} as const;

/** A person waits at a button. */
const ANSWER_TIMEOUT_MS = 15_000;

/** Paddle's words for a type or code of an error; its sentences can quote what was sent. */
const ERROR_WORD = /^[a-z_]{1,100}$/;

const NO_ANSWER = 'Paddle did not answer, or not as its API does.';

const Created = Type.Object({
  data: Type.Object({
    id: PaddleId,
    checkout: Type.Optional(
      Type.Union([Type.Object({ url: Type.Union([Type.String(), Type.Null()]) }), Type.Null()]),
    ),
  }),
});
const Refused = Type.Object({ error: Type.Object({ type: Type.String(), code: Type.String() }) });

/** The settings of Paddle Billing; all of them come from Paddle's dashboard. */
export interface PaddleSettings {
  readonly api_key: string;
  /** The secret of the notification destination, with which Paddle signs webhooks. */
  readonly webhook_secret: string;
  /** The product under which credit is sold; it decides the tax category. */
  readonly product_id: string;
  readonly environment: 'production' | 'sandbox';
}

/** The API that opens checkouts. */
export interface PaddleApi {
  readonly address: string;
  /** A request without an answer is ended after this time, because it would keep a command from ending. */
  readonly timeout_ms: number;
}

/**
 * Returns Paddle Billing as merchant of record. A checkout is a transaction with one price of its own and tax
 * on top, so that credit is the payment without tax. `api` is Paddle's by default. Throws `RangeError` when a
 * setting is empty, because an empty secret would let anyone sign.
 */
export function paddleProvider(
  settings: PaddleSettings,
  api: PaddleApi = { address: API_ADDRESSES[settings.environment], timeout_ms: ANSWER_TIMEOUT_MS },
): PaymentProvider {
  for (const [name, value] of Object.entries(settings)) {
    if (value === '') throw new RangeError(`the Paddle setting ${name} is empty`);
  }
  return {
    name: PADDLE_PROVIDER_NAME,
    createCheckout: (order) => createCheckout(api, settings, order),
    signatureIn,
    readWebhook: (call) => readWebhook(settings, call),
  };
}

function signatureIn(headers: Headers): string | null {
  const header = headers.get(SIGNATURE_HEADER);
  return parseSignature(header) === null ? null : header;
}

function readWebhook(settings: PaddleSettings, { body, signature: header, now_ms }: WebhookCall): Webhook {
  const signature = parseSignature(header);
  if (signature === null || !isSignedBy(signature, body, settings.webhook_secret)) return { kind: 'forged' };
  const age_s = ageSeconds(signature, now_ms);
  if (!isWithinTolerance(age_s)) return { kind: 'outside_tolerance', age_s };
  const report = readNotification(body, settings.product_id);
  return report === null ? { kind: 'unreadable' } : { kind: 'report', report };
}

async function createCheckout(api: PaddleApi, settings: PaddleSettings, order: Order): Promise<Checkout> {
  const answer = await createTransaction(api, settings, order).catch((cause: unknown) => {
    throw new PaymentProviderFailed(NO_ANSWER, { cause });
  });
  const refused = valueMatching(Refused, answer)?.error;
  if (refused !== undefined) {
    const [type, code] = [refused.type, refused.code].map((word) =>
      ERROR_WORD.test(word) ? word : 'unknown',
    );
    throw new PaymentProviderFailed(
      `Paddle refused the checkout (${type}, ${code}): check its API key, product and default payment link.`,
    );
  }
  const transaction = valueMatching(Created, answer)?.data;
  if (transaction === undefined) throw new PaymentProviderFailed(NO_ANSWER);
  const url = transaction.checkout?.url ?? null;
  if (url === null)
    throw new PaymentProviderFailed('Paddle gave no checkout link: set a default payment link.');
  return { external_id: transaction.id, url };
}

/** Resolves with the answer, a transaction or an error. Rejects when there is none in time, or no JSON. */
async function createTransaction(
  { address, timeout_ms }: PaddleApi,
  { api_key, product_id }: PaddleSettings,
  { payment_id, organization_id, amount_micros }: Order,
): Promise<unknown> {
  const transaction = {
    items: [
      {
        quantity: 1,
        price: {
          product_id,
          description: 'Prepaid credit',
          name: 'Prepaid credit',
          unit_price: { amount: String(amount_micros / CENT_MICROS), currency_code: PADDLE_CURRENCY },
          tax_mode: 'external',
          quantity: { minimum: 1, maximum: 1 },
        },
      },
    ],
    currency_code: PADDLE_CURRENCY,
    collection_mode: 'automatic',
    // Every event returns this, so that a payment that this database has lost can be credited.
    custom_data: { payment_id, organization_id, amount_micros },
  };
  const response = await fetch(`${address}/transactions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
    body: JSON.stringify(transaction),
    signal: AbortSignal.timeout(timeout_ms),
  });
  return await response.json();
}
