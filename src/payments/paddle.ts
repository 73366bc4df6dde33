import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  type AdjustmentNotification,
  Environment,
  EventName,
  Paddle,
  type TransactionNotification,
} from '@paddle/paddle-node-sdk';
import { MICROS_PER_DOLLAR } from '../money.ts';
import type { Checkout, Order, PaymentProvider, Webhook } from './provider.ts';

export const PADDLE_PROVIDER_NAME = 'paddle';

const CURRENCY = 'USD';
const CENT_MICROS = MICROS_PER_DOLLAR / 100;
const ANSWER_TIMEOUT_MS = 15_000;

/** Where and as whom Paddle Billing is asked; all of it comes from Paddle's dashboard. */
export interface PaddleSettings {
  readonly api_key: string;
  /** The secret of the notification destination, with which Paddle signs webhooks. */
  readonly webhook_secret: string;
  /** The product that credit is sold as; it decides the tax category. */
  readonly product_id: string;
  readonly environment: 'production' | 'sandbox';
}

/**
 * Paddle Billing as merchant of record. A checkout is a transaction of one price made for it, tax on top, so that
 * credit is what was paid without tax. `client` is the official SDK's, by default for the settings given. Throws
 * `RangeError` when a setting is empty, because an empty secret would let anyone sign.
 */
export function paddleProvider(
  settings: PaddleSettings,
  client: Pick<Paddle, 'transactions' | 'webhooks'> = paddleClient(settings),
): PaymentProvider {
  for (const [name, value] of Object.entries(settings)) {
    if (value === '') throw new RangeError(`the Paddle setting ${name} is empty`);
  }
  return {
    name: PADDLE_PROVIDER_NAME,
    createCheckout: (order) => inTime(createTransaction(client, settings, order)),
    readWebhook: async (rawBody, signatureHeader) => {
      if (signatureHeader === null) return { kind: 'forged' };
      if (!isSigned(rawBody, signatureHeader, settings.webhook_secret)) return { kind: 'forged' };
      try {
        return readEvent(await client.webhooks.unmarshal(rawBody, settings.webhook_secret, signatureHeader));
      } catch {
        return { kind: 'forged' };
      }
    },
  };
}

/**
 * Whether the signature is of this body under the secret (Paddle Billing, "Signature verification": `ts=…;h1=…`, HMAC
 * SHA-256 of `ts:body`). The SDK checks it again, and its age, but compares in a time that tells where two hashes
 * differ.
 */
function isSigned(rawBody: string, signatureHeader: string, secret: string): boolean {
  const fields = new Map(
    signatureHeader.split(';').map((field) => [field.slice(0, 2), field.slice(3)] as const),
  );
  const expected = createHmac('sha256', secret)
    .update(`${fields.get('ts')}:${rawBody}`)
    .digest();
  const given = Buffer.from(fields.get('h1') ?? '', 'hex');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function paddleClient(settings: PaddleSettings): Paddle {
  return new Paddle(settings.api_key, {
    environment: settings.environment === 'sandbox' ? Environment.sandbox : Environment.production,
  });
}

async function createTransaction(
  client: Pick<Paddle, 'transactions'>,
  settings: PaddleSettings,
  order: Order,
): Promise<Checkout> {
  const { payment_id, organization_id, amount_micros } = order;
  const transaction = await client.transactions.create({
    items: [
      {
        quantity: 1,
        price: {
          productId: settings.product_id,
          description: 'Prepaid credit',
          name: 'Prepaid credit',
          unitPrice: { amount: String(amount_micros / CENT_MICROS), currencyCode: CURRENCY },
          taxMode: 'external',
          quantity: { minimum: 1, maximum: 1 },
        },
      },
    ],
    currencyCode: CURRENCY,
    collectionMode: 'automatic',
    customData: { payment_id, organization_id },
  });
  const url = transaction.checkout?.url;
  if (url === undefined || url === null)
    throw new Error('Paddle gave no checkout link: set a default payment link');
  return { external_id: transaction.id, url };
}

/** The SDK waits for as long as the network does; a person at a button shall not. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('Paddle did not answer in time')), ANSWER_TIMEOUT_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

type PaddleEvent = Awaited<ReturnType<Paddle['webhooks']['unmarshal']>>;

function readEvent(event: PaddleEvent): Webhook {
  switch (event.eventType) {
    case EventName.TransactionCompleted:
      return readCompleted(event.data);
    case EventName.TransactionCanceled:
      return { kind: 'event', event: { kind: 'canceled', external_id: event.data.id } };
    case EventName.AdjustmentCreated:
    case EventName.AdjustmentUpdated:
      return readAdjustment(event.data);
    default:
      return irrelevant(`${event.eventType} does not move credit`);
  }
}

function readCompleted(transaction: TransactionNotification): Webhook {
  const totals = transaction.details?.totals;
  if (totals === null || totals === undefined) return irrelevant(`${transaction.id} has no totals`);
  if (totals.currencyCode !== CURRENCY) return irrelevant(`${transaction.id} was not paid in ${CURRENCY}`);
  const amount_micros = microsOf(totals.subtotal) - microsOf(totals.discount);
  if (!(amount_micros > 0)) return irrelevant(`${transaction.id} has no amount`);
  return { kind: 'event', event: { kind: 'completed', external_id: transaction.id, amount_micros } };
}

/**
 * Money goes back by an approved refund or a chargeback, and returns by a chargeback that was reversed, each an
 * adjustment of its own. A chargeback that is later marked as reversed says nothing that its reversal does not.
 */
function readAdjustment(adjustment: AdjustmentNotification): Webhook {
  const { id, action, status, transactionId, totals } = adjustment;
  const moves = action === 'refund' || action === 'chargeback' || action === 'chargeback_reverse';
  if (!moves || status !== 'approved') return irrelevant(`${id} is a ${action} that is ${status}`);
  if (totals.currencyCode !== CURRENCY) return irrelevant(`${id} is not in ${CURRENCY}`);
  const amount_micros = microsOf(totals.subtotal);
  if (!(amount_micros > 0)) return irrelevant(`${id} has no amount without tax`);
  return {
    kind: 'event',
    event: {
      kind: action === 'chargeback_reverse' ? 'refund_reversed' : 'refunded',
      external_id: id,
      payment_external_id: transactionId,
      amount_micros,
    },
  };
}

function irrelevant(reason: string): Webhook {
  return { kind: 'irrelevant', reason };
}

/** Paddle writes US dollars as cents in a string. NaN when it is something else. */
function microsOf(cents: string): number {
  return /^\d{1,12}$/.test(cents) ? Number(cents) * CENT_MICROS : Number.NaN;
}
