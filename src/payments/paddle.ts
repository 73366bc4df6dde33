import { ApiError, Environment, Paddle, type Transaction } from '@paddle/paddle-node-sdk';
import { CENT_MICROS } from '../contract/money.ts';
import { inTime } from '../time/in-time.ts';
import { PADDLE_CURRENCY, readNotification } from './paddle-events.ts';
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

/** The SDK has no timeout of its own, but a person waits at a button. */
const ANSWER_TIMEOUT_MS = 15_000;

/** Paddle's words for a type or code of an error; its sentences can quote what was sent. */
const ERROR_WORD = /^[a-z_]{1,100}$/;

/** The settings of Paddle Billing; all of them come from Paddle's dashboard. */
export interface PaddleSettings {
  readonly api_key: string;
  /** The secret of the notification destination, with which Paddle signs webhooks. */
  readonly webhook_secret: string;
  /** The product under which credit is sold; it decides the tax category. */
  readonly product_id: string;
  readonly environment: 'production' | 'sandbox';
}

/**
 * Returns Paddle Billing as merchant of record. A checkout is a transaction with one price of its own and tax
 * on top, so that credit is the payment without tax. `client` is the official SDK's, by default with the
 * given settings. Throws `RangeError` when a setting is empty, because an empty secret would let anyone sign.
 */
export function paddleProvider(
  settings: PaddleSettings,
  client: Pick<Paddle, 'transactions'> = paddleClient(settings),
): PaymentProvider {
  for (const [name, value] of Object.entries(settings)) {
    if (value === '') throw new RangeError(`the Paddle setting ${name} is empty`);
  }
  return {
    name: PADDLE_PROVIDER_NAME,
    createCheckout: (order) => createCheckout(client, settings, order),
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

function paddleClient(settings: PaddleSettings): Paddle {
  return new Paddle(settings.api_key, {
    environment: settings.environment === 'sandbox' ? Environment.sandbox : Environment.production,
  });
}

async function createCheckout(
  client: Pick<Paddle, 'transactions'>,
  settings: PaddleSettings,
  order: Order,
): Promise<Checkout> {
  const created = createTransaction(client, settings, order);
  const transaction = await inTime(created, ANSWER_TIMEOUT_MS, 'Paddle did not answer in time').catch(
    (cause: unknown) => {
      throw new PaymentProviderFailed(reasonOf(cause), { cause });
    },
  );
  const url = transaction.checkout?.url;
  if (url === undefined || url === null)
    throw new PaymentProviderFailed('Paddle gave no checkout link: set a default payment link.');
  return { external_id: transaction.id, url };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof ApiError)) return 'Paddle did not answer, or not as its API does.';
  const [type, code] = [error.type, error.code].map((word) => (ERROR_WORD.test(word) ? word : 'unknown'));
  return `Paddle refused the checkout (${type}, ${code}): check its API key, product and default payment link.`;
}

function createTransaction(
  client: Pick<Paddle, 'transactions'>,
  settings: PaddleSettings,
  { payment_id, organization_id, amount_micros }: Order,
): Promise<Transaction> {
  return client.transactions.create({
    items: [
      {
        quantity: 1,
        price: {
          productId: settings.product_id,
          description: 'Prepaid credit',
          name: 'Prepaid credit',
          unitPrice: { amount: String(amount_micros / CENT_MICROS), currencyCode: PADDLE_CURRENCY },
          taxMode: 'external',
          quantity: { minimum: 1, maximum: 1 },
        },
      },
    ],
    currencyCode: PADDLE_CURRENCY,
    collectionMode: 'automatic',
    // Every event returns this, so that a payment that this database has lost can be credited.
    customData: { payment_id, organization_id, amount_micros },
  });
}
