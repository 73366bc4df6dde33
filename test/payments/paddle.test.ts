import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import fc from 'fast-check';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import { alerts, payments } from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { readOrganization } from '../../src/accounts/organizations.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { creditHistory } from '../../src/payments/history.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import type { PaymentProvider } from '../../src/payments/provider.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { causesOf } from '../../src/problems/causes.ts';
import { TestClock } from '../accounts/support.ts';
import { DOLLAR } from '../support/money.ts';
import { rejection } from '../support/rejection.ts';
import {
  adjustment,
  type Call,
  hashOf,
  notification,
  SETTINGS,
  type SignOptions,
  sign as signAt,
  transaction,
} from './paddle-calls.ts';
import { type Books, expectCleanAudit, openBooks } from './support.ts';

/** The time of the books' clock. */
const NOW_MS = new TestClock().now_ms();

const COMPLETED = transaction('transaction.completed');
const REFUND = adjustment('adjustment.updated');

let books: Books;
let provider: PaymentProvider;

beforeEach(async () => {
  books = await openBooks();
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

function sign(body: string, options: SignOptions = {}): Call {
  return signAt(body, { now_ms: NOW_MS, ...options });
}

async function send(call: Call) {
  const { outcome } = await handleWebhook(books.context, provider, Buffer.from(call.body), call.signature);
  return { outcome };
}

async function balances() {
  const { credit_micros, paid_micros, tier } = await readOrganization(
    books.context.store,
    books.organization_id,
  );
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
    ['two times', { ...signed, signature: `ts=1;${signed.signature}` }],
    ['a hash that is none', { ...signed, signature: signed.signature?.slice(0, -1) ?? '' }],
    ['hashes under other secrets', severalHashes(['one', 'another'])],
    ['the same JSON written otherwise', { ...signed, body: `${COMPLETED} ` }],
    [
      'another time than was signed',
      { ...signed, signature: signed.signature?.replace('ts=1', 'ts=2') ?? '' },
    ],
  ];
  for (const [name, call] of rows) {
    test(name, async () => {
      expect(await send(call)).toEqual({ outcome: 'forged' });
      expect(await balances()).toEqual(NOTHING);
      expect(books.db.select().from(payments).all()).toHaveLength(1);
    });
  }

  test('a body whose bytes are no text is judged by its bytes', async () => {
    const bytes = Buffer.from([0xff, 0xfe]);
    const time_s = NOW_MS / 1_000;
    const signature = `ts=${time_s};h1=${hashOf(time_s, bytes)}`;
    const readings = await Promise.all(
      [bytes, Buffer.from(bytes.toString())].map((body) =>
        handleWebhook(books.context, provider, body, signature),
      ),
    );
    expect(readings.map(({ outcome }) => outcome)).toEqual(['unreadable', 'forged']);
  });

  test('a provider with an empty secret does not start', () => {
    expect(() => paddleProvider({ ...SETTINGS, webhook_secret: '' })).toThrow(RangeError);
  });
});

/** A call that is signed under each of these secrets, as while Paddle rotates them. */
function severalHashes(secrets: readonly string[]): Call {
  const time_s = NOW_MS / 1_000;
  const hashes = secrets.map((secret) => `h1=${hashOf(time_s, COMPLETED, secret)}`);
  return { body: COMPLETED, signature: [`ts=${time_s}`, ...hashes].join(';') };
}

describe('secrets and clocks', () => {
  for (const secrets of [
    ['old', SETTINGS.webhook_secret],
    [SETTINGS.webhook_secret, 'new'],
  ]) {
    test(`one signature of several suffices: ${secrets}`, async () => {
      expect(await send(severalHashes(secrets))).toEqual({ outcome: 'applied' });
    });
  }

  for (const [age_s, outcome] of [
    [3_600, 'outside_tolerance'],
    [311, 'outside_tolerance'],
    [300, 'applied'],
    [0, 'applied'],
    [-300, 'applied'],
    [-301, 'outside_tolerance'],
  ] as const) {
    test(`a call signed ${age_s} s ago is ${outcome}`, async () => {
      expect(await send(sign(COMPLETED, { age_s }))).toEqual({ outcome });
      expect(await balances()).toEqual(outcome === 'applied' ? PAID : NOTHING);
    });
  }

  test('a forged call is forged, however old it says it is', async () => {
    expect(await send(sign(COMPLETED, { age_s: 3_600, secret: 'guess' }))).toEqual({ outcome: 'forged' });
  });
});

describe('genuine calls that cannot be read change nothing', () => {
  for (const [name, body] of [
    ['no JSON', '{'],
    ['no notification', 'null'],
    ['a list', '[]'],
    ['no data', '{"event_id":"evt_1","event_type":"transaction.completed"}'],
    ['an id that is none', '{"event_id":7,"event_type":"transaction.completed","data":{}}'],
    ['a payment without an id', notification('transaction.completed', {})],
    ['a cancellation without an id', notification('transaction.canceled', { id: 7 })],
    ['a refund of nothing that is named', notification('adjustment.created', { id: 'adj_1' })],
  ] as const) {
    test(name, async () => {
      expect(await send(sign(body))).toEqual({ outcome: 'unreadable' });
      expect(await balances()).toEqual(NOTHING);
    });
  }
});

describe('genuine calls', () => {
  test('a completed transaction is credit, without tax, and moves the tier', async () => {
    expect(await send(sign(COMPLETED))).toEqual({ outcome: 'applied' });
    expect(await balances()).toEqual(PAID);
  });

  test('a duplicate changes nothing', async () => {
    await send(sign(COMPLETED));
    for (let round = 0; round < 3; round += 1)
      expect(await send(sign(COMPLETED))).toEqual({ outcome: 'known' });
    await send(sign(REFUND));
    expect(await send(sign(REFUND))).toEqual({ outcome: 'known' });
    expect(await send(sign(adjustment('adjustment.created')))).toEqual({ outcome: 'known' });
    expect(await send(sign(COMPLETED))).toEqual({ outcome: 'known' });
    expect((await balances()).credit_micros).toBe(15 * DOLLAR);
  });

  test('sixteen copies at once count once', async () => {
    const results = await Promise.all(Array.from({ length: 16 }, () => send(sign(COMPLETED))));
    expect(results.filter((result) => result.outcome === 'applied')).toHaveLength(1);
    expect(await balances()).toEqual(PAID);
  });

  test('what was paid counts when a discount made it less than what was ordered', async () => {
    await send(sign(transaction('transaction.completed', { discount: '500' })));
    expect((await balances()).credit_micros).toBe(20 * DOLLAR);
  });

  test('a refund that comes first waits for its payment', async () => {
    expect(await send(sign(REFUND))).toEqual({ outcome: 'waiting' });
    expect(await balances()).toEqual(NOTHING);
    expect(await send(sign(COMPLETED))).toEqual({ outcome: 'applied' });
    expect(await balances()).toEqual({ credit_micros: 15 * DOLLAR, paid_micros: 15 * DOLLAR, tier: 1 });
  });

  test('a full refund removes the credit and the tier', async () => {
    await send(sign(COMPLETED));
    await send(sign(adjustment('adjustment.created', { cents: '2500' })));
    expect(await balances()).toEqual(NOTHING);
  });

  test('more can not be taken back than was paid', async () => {
    await send(sign(COMPLETED));
    await send(sign(adjustment('adjustment.created', { id: 'adj_1', cents: '2000' })));
    const result = await send(sign(adjustment('adjustment.created', { id: 'adj_2', cents: '2000' })));
    expect(result).toEqual({ outcome: 'waiting' });
    expect((await balances()).credit_micros).toBe(5 * DOLLAR);
  });

  test('the reversal of a part of a chargeback counts also when a later refund came before it', async () => {
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
    expect((await balances()).credit_micros).toBe(8 * DOLLAR);
  });

  test('a won dispute brings back the days since the payment, and is told as no new one', async () => {
    const first_paid_at_ms = books.clock.now_ms();
    await startPayment('txn_2', 5 * DOLLAR);
    const disputed = (action: string, transaction_id: string) =>
      adjustment('adjustment.created', {
        ...{ id: `${action}_${transaction_id}`, action, transaction_id },
        cents: transaction_id === 'txn_1' ? '2500' : '500',
      });
    await send(sign(COMPLETED));
    books.clock.advance(60_000);
    await send(sign(transaction('transaction.completed', { id: 'txn_2', cents: '500' })));
    for (const action of ['chargeback', 'chargeback_reverse']) {
      books.clock.advance(60_000);
      for (const id of ['txn_2', 'txn_1']) await send(sign(disputed(action, id)));
    }
    const { organization_id, context, db } = books;
    expect(await readOrganization(context.store, organization_id)).toMatchObject({
      credit_micros: 30 * DOLLAR,
      first_paid_at_ms,
    });
    const told = db.select().from(alerts).where(eq(alerts.kind, 'payment_credited')).all();
    expect(told.map(({ amount_micros }) => amount_micros)).toEqual([25 * DOLLAR, 5 * DOLLAR]);
    const given = { ...context, reader: new SqliteMovementReader(db) };
    const history = await creditHistory(given, OPERATOR, { organization_id, limit: 100 });
    expect(
      history
        .map(({ kind }) => kind)
        .filter((kind) => kind !== 'tier_change')
        .join(' '),
    ).toBe('refund_reversed refund_reversed refund refund top_up top_up');
  });

  test('a cancellation after the payment takes nothing away', async () => {
    await send(sign(COMPLETED));
    expect(await send(sign(transaction('transaction.canceled')))).toEqual({ outcome: 'known' });
    expect(await balances()).toEqual(PAID);
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
      'a chargeback marked `reversed`',
      adjustment('adjustment.updated', { action: 'chargeback', status: 'reversed' }),
    ],
    ['a credit to a balance at Paddle', adjustment('adjustment.created', { action: 'credit' })],
    ['a refund of the tax alone', adjustment('adjustment.created', { cents: '0' })],
    ['a transaction that is paid but not complete', transaction('transaction.paid')],
    ['a transaction of nothing', transaction('transaction.completed', { cents: '0' })],
    ['an event that is not known here', notification('something.new', { id: 'x' })],
  ];
  for (const [name, body] of irrelevant) {
    test(`are irrelevant to the books: ${name}`, async () => {
      expect((await send(sign(body))).outcome).toBe('irrelevant');
      expect(await balances()).toEqual(NOTHING);
      await send(sign(COMPLETED));
      expect(await balances()).toEqual(PAID);
    });
  }

  const unresolved: readonly (readonly [name: string, body: string])[] = [
    ['a payment in another currency', transaction('transaction.completed', { currency_code: 'EUR' })],
    ['a payment of an amount that is none', transaction('transaction.completed', { cents: '-2500' })],
    ['a payment without totals', notification('transaction.completed', { id: 'txn_1' })],
    ['a refund in another currency', adjustment('adjustment.created', { currency_code: 'EUR' })],
    [
      'a payment of more than was ordered',
      transaction('transaction.completed', { cents: '3000', discount: '499' }),
    ],
    ['a payment for another product', transaction('transaction.completed', { product_ids: ['pro_shirt'] })],
    [
      'a payment for another product, too',
      transaction('transaction.completed', { product_ids: ['pro_1', 'pro_shirt'] }),
    ],
  ];
  for (const [name, body] of unresolved) {
    test(`are left to the operator: ${name}`, async () => {
      expect(await send(sign(body))).toEqual({ outcome: 'unresolved' });
      expect(await balances()).toEqual(NOTHING);
      await send(sign(COMPLETED));
      expect(await balances()).toEqual(PAID);
    });
  }
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
      books = await openBooks();
      await startPayment('txn_1', 25 * DOLLAR);
      await startPayment('txn_2', 5 * DOLLAR);
      await startPayment('txn_3', 5 * DOLLAR);
      for (const index of order) await send(sign(story[index] ?? ''));
      expect(await balances()).toEqual({ credit_micros: 13 * DOLLAR, paid_micros: 13 * DOLLAR, tier: 1 });
      expectCleanAudit(books);
    }),
    { numRuns: 40 },
  );
});

describe('a checkout, over HTTP to a server that answers like Paddle', () => {
  function withPaddle(answer: (request: Request) => Response | Promise<Response>, timeout_ms = 15_000) {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', reusePort: false, fetch: answer });
    const api = { address: server.url.origin, timeout_ms };
    return { provider: paddleProvider(SETTINGS, api), stop: () => server.stop(true) };
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
        authorization: 'Bearer pdl_test',
        body: {
          currency_code: 'USD',
          collection_mode: 'automatic',
          custom_data: { payment_id, organization_id: books.organization_id, amount_micros: 12_340_000 },
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
    expect((await balances()).credit_micros).toBe(12_340_000);
  });

  const refusal = (code: string) => () =>
    Response.json({ error: { type: 'request_error', code, detail: 'no' } }, { status: 403 });
  for (const [name, answer, reason] of [
    [
      'an error',
      refusal('forbidden'),
      /refused the checkout \(request_error, forbidden\): check its API key/,
    ],
    ['a text for a code', refusal('No, Ada!'), /refused the checkout \(request_error, unknown\)/],
    [
      'no link',
      () => Response.json({ data: { id: 'txn_9', items: [], payments: [], checkout: { url: null } } }),
      /set a default payment link/,
    ],
    ['no JSON', () => new Response('<html>', { status: 502 }), /did not answer, or not as its API does/],
    ['no transaction', () => Response.json({ data: [] }), /did not answer, or not as its API does/],
  ] as const) {
    test(`is refused when Paddle answers with ${name}, which the log tells and the customer is not told`, async () => {
      const paddle = withPaddle(answer);
      const given = { organization_id: books.organization_id, amount_micros: 5 * DOLLAR };
      const refused = await rejection(startTopUp(books.context, OPERATOR, paddle.provider, given));
      expect(refused).toMatchObject({
        code: 'payment_provider_failed',
        message: 'The payment provider did not answer as expected: try again later.',
      });
      expect(causesOf(refused)[1]).toMatchObject({
        error: 'PaymentProviderFailed',
        message: expect.stringMatching(reason),
      });
      await paddle.stop();
      expect(books.db.select().from(payments).all()).toHaveLength(1);
    });
  }

  test('ends its request where Paddle does not answer in time, so that nothing waits for it', async () => {
    const ended = Promise.withResolvers<void>();
    const paddle = withPaddle(({ signal }) => {
      signal.addEventListener('abort', () => ended.resolve());
      return new Promise(() => {});
    }, 100);
    const given = { organization_id: books.organization_id, amount_micros: 5 * DOLLAR };
    const refused = await rejection(startTopUp(books.context, OPERATOR, paddle.provider, given));
    expect(refused).toMatchObject({ code: 'payment_provider_failed' });
    await ended.promise;
    await paddle.stop();
  });
});
