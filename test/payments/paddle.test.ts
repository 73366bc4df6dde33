import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { Paddle } from '@paddle/paddle-node-sdk';
import fc from 'fast-check';
import { GroupCommit } from '../../db/group-commit.ts';
import { payments } from '../../db/schema.ts';
import { OPERATOR } from '../../src/accounts/actor.ts';
import { readOrganization } from '../../src/accounts/organizations.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import type { PaymentProvider } from '../../src/payments/provider.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { type Call, notification, SETTINGS, sign, transaction } from './paddle-calls.ts';
import { expectCleanAudit, openBooks } from './support.ts';

const DOLLAR = 1_000_000;
interface AdjustmentGiven {
  readonly id?: string;
  readonly transaction_id?: string;
  readonly action?: string;
  readonly status?: string;
  readonly cents?: string;
  readonly currency_code?: string;
}

function adjustment(event_type: string, given: AdjustmentGiven = {}): string {
  const {
    id = 'adj_1',
    transaction_id = 'txn_1',
    action = 'refund',
    status = 'approved',
    cents = '1000',
    currency_code = 'USD',
  } = given;
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

const COMPLETED = transaction('transaction.completed');
const REFUND = adjustment('adjustment.updated');

let books: ReturnType<typeof openBooks>;
let provider: PaymentProvider;

beforeEach(async () => {
  books = openBooks();
  provider = paddleProvider(SETTINGS);
  await startPayment('txn_1', 25 * DOLLAR);
});

afterEach(() => {
  expectCleanAudit(books);
  books.remove();
});

/** A pending payment, as if Paddle had answered a checkout with this transaction. */
async function startPayment(external_id: string, amount_micros: number): Promise<void> {
  const checkout = { external_id, url: 'https://pay.example/' };
  await startTopUp(
    books.context,
    OPERATOR,
    { ...provider, createCheckout: () => Promise.resolve(checkout) },
    { organization_id: books.organization_id, amount_micros },
  );
}

function send(call: Call) {
  return handleWebhook(
    { ...books.context, commits: new GroupCommit(books.db) },
    provider,
    call.body,
    call.signature,
  );
}

function balances() {
  const { credit_micros, paid_micros, tier } = readOrganization(books.context, books.organization_id);
  return { credit_micros, paid_micros, tier };
}

const NOTHING = { credit_micros: 0, paid_micros: 0, tier: 0 };
const PAID = { credit_micros: 25 * DOLLAR, paid_micros: 25 * DOLLAR, tier: 1 };

describe('forged calls change nothing', () => {
  const signed = sign(COMPLETED);
  const rows: readonly (readonly [name: string, call: Call])[] = [
    ['no signature', { body: COMPLETED, signature: null }],
    ['an empty signature', { body: COMPLETED, signature: '' }],
    ['words for a signature', { body: COMPLETED, signature: 'trust me' }],
    ['a time without a hash', { body: COMPLETED, signature: 'ts=1768435200' }],
    ['a hash without a time', { body: COMPLETED, signature: signed.signature?.split(';')[1] ?? '' }],
    ['another secret', sign(COMPLETED, { secret: 'guess' })],
    ['an empty secret', sign(COMPLETED, { secret: '' })],
    ['the signature of another body', { ...signed, body: COMPLETED.replace('"2500"', '"9900"') }],
    ['the same JSON written otherwise', { ...signed, body: `${COMPLETED} ` }],
    [
      'another time than was signed',
      { ...signed, signature: signed.signature?.replace('ts=1', 'ts=2') ?? '' },
    ],
    ['a recorded call, sent again an hour later', sign(COMPLETED, { age_s: 3_600 })],
    ['signed text that is no JSON', sign('{')],
    ['signed JSON that is no notification', sign('null')],
  ];
  for (const [name, call] of rows) {
    test(name, async () => {
      expect(await send(call)).toEqual({ outcome: 'forged' });
      expect(balances()).toEqual(NOTHING);
      expect(books.db.select().from(payments).all()).toHaveLength(1);
    });
  }

  test('a provider with an empty secret does not start', () => {
    expect(() => paddleProvider({ ...SETTINGS, webhook_secret: '' })).toThrow(RangeError);
  });
});

describe('genuine calls', () => {
  test('a completed transaction is credit, without tax, and moves the tier', async () => {
    expect(await send(sign(COMPLETED))).toEqual({ outcome: 'applied' });
    expect(balances()).toEqual(PAID);
  });

  test('a duplicate changes nothing', async () => {
    await send(sign(COMPLETED));
    for (let round = 0; round < 3; round += 1)
      expect(await send(sign(COMPLETED))).toEqual({ outcome: 'known' });
    await send(sign(REFUND));
    expect(await send(sign(REFUND))).toEqual({ outcome: 'known' });
    expect(await send(sign(adjustment('adjustment.created')))).toEqual({ outcome: 'known' });
    expect(await send(sign(COMPLETED))).toEqual({ outcome: 'known' });
    expect(balances().credit_micros).toBe(15 * DOLLAR);
  });

  test('sixteen copies at once count once', async () => {
    const results = await Promise.all(Array.from({ length: 16 }, () => send(sign(COMPLETED))));
    expect(results.filter((result) => result.outcome === 'applied')).toHaveLength(1);
    expect(balances()).toEqual(PAID);
  });

  test('what was paid counts when a discount made it less than what was ordered', async () => {
    await send(sign(transaction('transaction.completed', { discount: '500' })));
    expect(balances().credit_micros).toBe(20 * DOLLAR);
  });

  test('a refund that comes first waits for its payment', async () => {
    expect(await send(sign(REFUND))).toEqual({ outcome: 'waiting' });
    expect(balances()).toEqual(NOTHING);
    expect(await send(sign(COMPLETED))).toEqual({ outcome: 'applied' });
    expect(balances()).toEqual({ credit_micros: 15 * DOLLAR, paid_micros: 15 * DOLLAR, tier: 1 });
  });

  test('a full refund removes the credit and the tier', async () => {
    await send(sign(COMPLETED));
    await send(sign(adjustment('adjustment.created', { cents: '2500' })));
    expect(balances()).toEqual(NOTHING);
  });

  test('more can not be taken back than was paid', async () => {
    await send(sign(COMPLETED));
    await send(sign(adjustment('adjustment.created', { id: 'adj_1', cents: '2000' })));
    const result = await send(sign(adjustment('adjustment.created', { id: 'adj_2', cents: '2000' })));
    expect(result).toEqual({ outcome: 'waiting' });
    expect(balances().credit_micros).toBe(5 * DOLLAR);
  });

  test('a partly reversed chargeback counts also when a later refund came before it', async () => {
    await send(sign(COMPLETED));
    await send(sign(adjustment('adjustment.created', { id: 'adj_3', cents: '700' })));
    const chargeback = adjustment('adjustment.created', { id: 'adj_1', action: 'chargeback', cents: '2000' });
    const reversal = adjustment('adjustment.created', {
      id: 'adj_2',
      action: 'chargeback_reverse',
      cents: '1000',
    });
    expect(await send(sign(chargeback))).toEqual({ outcome: 'waiting' });
    expect(await send(sign(reversal))).toEqual({ outcome: 'applied' });
    expect(balances().credit_micros).toBe(8 * DOLLAR);
  });

  test('a cancellation after the payment takes nothing away', async () => {
    await send(sign(COMPLETED));
    expect(await send(sign(transaction('transaction.canceled')))).toEqual({ outcome: 'known' });
    expect(balances()).toEqual(PAID);
  });

  test('a cancellation ends a pending payment', async () => {
    expect(await send(sign(transaction('transaction.canceled')))).toEqual({ outcome: 'applied' });
    expect(books.db.select().from(payments).get()?.status).toBe('canceled');
  });

  const irrelevant: readonly (readonly [name: string, body: string])[] = [
    [
      'a refund that Paddle has not approved yet',
      adjustment('adjustment.created', { status: 'pending_approval' }),
    ],
    ['a refund that Paddle rejected', adjustment('adjustment.updated', { status: 'rejected' })],
    ['the warning of a chargeback', adjustment('adjustment.created', { action: 'chargeback_warning' })],
    [
      'a chargeback marked as reversed',
      adjustment('adjustment.updated', { action: 'chargeback', status: 'reversed' }),
    ],
    ['a credit to a balance at Paddle', adjustment('adjustment.created', { action: 'credit' })],
    ['a refund of the tax alone', adjustment('adjustment.created', { cents: '0' })],
    ['a refund in another currency', adjustment('adjustment.created', { currency_code: 'EUR' })],
    ['a transaction that is paid but not complete', transaction('transaction.paid')],
    ['a transaction in another currency', transaction('transaction.completed', { currency_code: 'EUR' })],
    ['a transaction of nothing', transaction('transaction.completed', { cents: '0' })],
    ['an amount that is none', transaction('transaction.completed', { cents: '-2500' })],
    ['an event that is not known here', notification('something.new', { id: 'x' })],
  ];
  for (const [name, body] of irrelevant) {
    test(`are irrelevant to the books: ${name}`, async () => {
      expect((await send(sign(body))).outcome).toBe('irrelevant');
      expect(balances()).toEqual(NOTHING);
      await send(sign(COMPLETED));
      expect(balances()).toEqual(PAID);
    });
  }

  test('a transaction that was not started here is told apart', async () => {
    const body = transaction('transaction.completed', { id: 'txn_other' });
    expect(await send(sign(body))).toEqual({ outcome: 'unknown_payment' });
    const refund = adjustment('adjustment.created', { transaction_id: 'txn_other' });
    expect(await send(sign(refund))).toEqual({ outcome: 'unknown_payment' });
    expect(balances()).toEqual(NOTHING);
  });
});

test('whatever the order and number of deliveries, the outcome is that of one delivery each, in order', async () => {
  const story = [
    COMPLETED,
    adjustment('adjustment.created', { id: 'adj_1', status: 'pending_approval', cents: '1000' }),
    adjustment('adjustment.updated', { id: 'adj_1', cents: '1000' }),
    adjustment('adjustment.created', { id: 'adj_2', action: 'chargeback', cents: '1500' }),
    adjustment('adjustment.created', { id: 'adj_3', action: 'chargeback_reverse', cents: '1500' }),
    adjustment('adjustment.updated', {
      id: 'adj_2',
      action: 'chargeback',
      status: 'reversed',
      cents: '1500',
    }),
    adjustment('adjustment.created', { id: 'adj_4', action: 'chargeback', cents: '700' }),
    transaction('transaction.completed', { id: 'txn_2', cents: '500' }),
    transaction('transaction.canceled', { id: 'txn_3' }),
  ];
  const deliveries = fc.array(fc.nat({ max: story.length - 1 }), { maxLength: 12 }).chain((extra) => {
    const all = [...story.keys(), ...extra];
    return fc.shuffledSubarray(all, { minLength: all.length });
  });
  await fc.assert(
    fc.asyncProperty(deliveries, async (order) => {
      books.remove();
      books = openBooks();
      await startPayment('txn_1', 25 * DOLLAR);
      await startPayment('txn_2', 5 * DOLLAR);
      await startPayment('txn_3', 5 * DOLLAR);
      for (const index of order) await send(sign(story[index] ?? ''));
      expect(balances()).toEqual({ credit_micros: 13 * DOLLAR, paid_micros: 13 * DOLLAR, tier: 1 });
      expectCleanAudit(books);
    }),
    { numRuns: 40 },
  );
});

describe('a checkout, through the real SDK to a server that answers like Paddle', () => {
  function withPaddle(answer: (request: Request) => Response | Promise<Response>) {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', reusePort: false, fetch: answer });
    // @ts-expect-error: the SDK takes a base address in the place of an environment, but its types do not say so.
    const client = new Paddle(SETTINGS.api_key, { environment: server.url.origin });
    return { provider: paddleProvider(SETTINGS, client), stop: () => server.stop(true) };
  }

  test('asks for the amount in US dollars with tax on top and gives the link to pay', async () => {
    const requests: { path: string; authorization: string | null; body: unknown }[] = [];
    const paddle = withPaddle(async (request) => {
      const { pathname } = new URL(request.url);
      requests.push({
        path: `${request.method} ${pathname}`,
        authorization: request.headers.get('authorization'),
        body: await request.json(),
      });
      return Response.json({
        data: {
          id: 'txn_9',
          items: [],
          payments: [],
          checkout: { url: 'https://pay.example/?_ptxn=txn_9' },
        },
      });
    });
    const given = { organization_id: books.organization_id, amount_micros: 12.34 * DOLLAR };
    const { payment_id, checkout } = await startTopUp(books.context, OPERATOR, paddle.provider, given);
    await paddle.stop();
    expect(checkout).toEqual({ external_id: 'txn_9', url: 'https://pay.example/?_ptxn=txn_9' });
    expect(requests).toMatchObject([
      {
        path: 'POST /transactions',
        authorization: 'bearer pdl_test',
        body: {
          currency_code: 'USD',
          collection_mode: 'automatic',
          custom_data: { payment_id, organization_id: books.organization_id },
          items: [
            {
              quantity: 1,
              price: {
                product_id: 'pro_1',
                unit_price: { amount: '1234', currency_code: 'USD' },
                tax_mode: 'external',
                quantity: { minimum: 1, maximum: 1 },
              },
            },
          ],
        },
      },
    ]);
    expect(await send(sign(transaction('transaction.completed', { id: 'txn_9', cents: '1234' })))).toEqual({
      outcome: 'applied',
    });
    expect(balances().credit_micros).toBe(12_340_000);
  });

  for (const [name, answer] of [
    [
      'an error',
      () =>
        Response.json({ error: { type: 'request_error', code: 'forbidden', detail: 'no' } }, { status: 403 }),
    ],
    [
      'no link',
      () => Response.json({ data: { id: 'txn_9', items: [], payments: [], checkout: { url: null } } }),
    ],
    ['no JSON', () => new Response('<html>', { status: 502 })],
  ] as const) {
    test(`is refused in one sentence when Paddle answers with ${name}`, async () => {
      const paddle = withPaddle(answer);
      const given = { organization_id: books.organization_id, amount_micros: 5 * DOLLAR };
      await expect(startTopUp(books.context, OPERATOR, paddle.provider, given)).rejects.toMatchObject({
        code: 'payment_provider_failed',
      });
      await paddle.stop();
      expect(books.db.select().from(payments).all()).toHaveLength(1);
    });
  }
});
