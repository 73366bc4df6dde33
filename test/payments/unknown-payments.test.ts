import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { eq } from 'drizzle-orm';
import fc from 'fast-check';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { paymentEvents, payments } from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { createOrganization, readOrganization } from '../../src/accounts/organizations.ts';
import { signUp } from '../../src/accounts/users.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { listPaymentEvents } from '../../src/payments/list-events.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import type { Order } from '../../src/payments/provider.ts';
import { assignPaymentEvent, dismissPaymentEvent } from '../../src/payments/resolve-event.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { contextOn } from '../support/context.ts';
import { DOLLAR } from '../support/money.ts';
import { adjustment, eventId, notification, SETTINGS, sign, transaction } from './paddle-calls.ts';
import { type Books, expectCleanAudit, openBooks } from './support.ts';

const provider = paddleProvider(SETTINGS);

/** The order that a checkout of $25 gives to Paddle; no row of it is left here. */
const LOST_ORDER = { payment_id: 'pay_lost', amount_micros: 25 * DOLLAR };

let books: Books;

beforeEach(async () => {
  books = await openBooks();
});

afterEach(() => {
  expectCleanAudit(books);
  books.remove();
});

async function send(body: string) {
  const { body: bytes, signature } = sign(body, { now_ms: books.clock.now_ms() });
  return (await handleWebhook(books.context, provider, Buffer.from(bytes), signature)).outcome;
}

async function creditOf(organization_id = books.organization_id): Promise<number> {
  return (await readOrganization(books.context.store, organization_id)).credit_micros;
}

function lostPayment(given: Parameters<typeof transaction>[1] = {}): string {
  const custom_data = { ...LOST_ORDER, organization_id: books.organization_id };
  return transaction('transaction.completed', { custom_data, ...given });
}

function unresolvedEvents() {
  return listPaymentEvents(books.context, OPERATOR, { unresolved_only: true, limit: 100 });
}

function outcomes() {
  return Object.fromEntries(
    books.db
      .select()
      .from(paymentEvents)
      .all()
      .map((event) => [event.external_id, event.outcome]),
  );
}

function assign(body: string, organization_id = books.organization_id, amount_micros?: number) {
  return assignPaymentEvent(books.context, OPERATOR, {
    event_id: eventId(body),
    organization_id,
    amount_micros,
  });
}

/** An organization beside that of the books. */
async function otherOrganization(): Promise<string> {
  return (await createOrganization(books.context, OPERATOR, { name: 'Other' })).id;
}

describe('a payment that the database has lost', () => {
  test('is credited to the organization of its order, once, under the id that it had', async () => {
    expect(await send(lostPayment())).toBe('applied');
    for (let round = 0; round < 3; round += 1) expect(await send(lostPayment())).toBe('known');
    expect(await creditOf()).toBe(25 * DOLLAR);
    expect(books.db.select().from(payments).all()).toMatchObject([
      { id: 'pay_lost', external_id: 'txn_1', status: 'completed', amount_micros: 25 * DOLLAR },
    ]);
    expect(await unresolvedEvents()).toEqual([]);
  });

  test('is credited once when its event is here before the checkout has returned', async () => {
    const { payment_id } = await startTopUp(
      books.context,
      OPERATOR,
      {
        ...provider,
        createCheckout: async (custom_data: Order) => {
          expect(await send(transaction('transaction.completed', { custom_data }))).toBe('applied');
          return { external_id: 'txn_1', url: null };
        },
      },
      { organization_id: books.organization_id, amount_micros: 25 * DOLLAR },
    );
    expect(await send(lostPayment())).toBe('known');
    expect(await creditOf()).toBe(25 * DOLLAR);
    expect(books.db.select().from(payments).all()).toMatchObject([{ id: payment_id, status: 'completed' }]);
  });

  test('brings the refunds with it that came before, without their being sent again', async () => {
    expect(await send(adjustment('adjustment.created', { cents: '1000' }))).toBe('unresolved');
    expect(await send(adjustment('adjustment.updated', { cents: '1000' }))).toBe('unresolved');
    const reversal = { id: 'adj_2', action: 'chargeback_reverse', cents: '400' };
    expect(await send(adjustment('adjustment.created', reversal))).toBe('unresolved');
    expect(await creditOf()).toBe(0);
    expect(await send(lostPayment())).toBe('applied');
    expect(await creditOf()).toBe(19 * DOLLAR);
    expect(outcomes()).toEqual({ txn_1: 'applied', adj_1: 'applied', adj_2: 'applied' });
    expect(await send(adjustment('adjustment.created', { cents: '1000' }))).toBe('known');
    expect(await creditOf()).toBe(19 * DOLLAR);
  });

  test('counts as what was paid when a discount made it less than what was ordered', async () => {
    expect(await send(lostPayment({ discount: '500' }))).toBe('applied');
    expect(await creditOf()).toBe(20 * DOLLAR);
  });

  test('counts also when its checkout named no amount, as those of earlier versions', async () => {
    const custom_data = { payment_id: 'pay_lost', organization_id: books.organization_id };
    expect(await send(lostPayment({ custom_data }))).toBe('applied');
    expect(await creditOf()).toBe(25 * DOLLAR);
  });
});

describe('an event waits for the operator when', () => {
  const order = (changed: object) => ({
    custom_data: { ...LOST_ORDER, organization_id: books.organization_id, ...changed },
  });
  const rows: readonly (readonly [name: string, body: () => string, reason: RegExp])[] = [
    ['it names no order', () => lostPayment({ custom_data: null }), /no order/],
    ['its order is words', () => lostPayment({ custom_data: 'org' }), /no order/],
    ['its order is no id of ours', () => lostPayment(order({ organization_id: 'Jane Doe' })), /no order/],
    [
      'its organization does not exist',
      () => lostPayment(order({ organization_id: 'org_gone' })),
      /organization does not exist/,
    ],
    ['more was paid than ordered', () => lostPayment(order({ amount_micros: DOLLAR })), /more was paid/],
    ['it is in another currency', () => lostPayment({ currency_code: 'EUR' }), /US dollars/],
    ['it sold another product', () => lostPayment({ product_ids: ['pro_shirt'] }), /credit alone/],
    [
      'it sold another product too',
      () => lostPayment({ product_ids: ['pro_1', 'pro_shirt'] }),
      /credit alone/,
    ],
    ['it does not tell what it sold', () => lostPayment({ product_ids: [] }), /credit alone/],
    ['it refunds a payment that is not known', () => adjustment('adjustment.created'), /not known here/],
  ];
  for (const [name, body, reason] of rows) {
    test(name, async () => {
      for (let round = 0; round < 2; round += 1) expect(await send(body())).toBe('unresolved');
      expect(await creditOf()).toBe(0);
      expect(await unresolvedEvents()).toMatchObject([
        {
          event_id: eventId(body()),
          payment_external_id: 'txn_1',
          outcome: 'unresolved',
          reason: expect.stringMatching(reason),
        },
      ]);
      expect(books.db.select().from(payments).all()).toEqual([]);
    });
  }

  test('its order belongs to another payment', async () => {
    await send(lostPayment());
    expect(await send(lostPayment({ id: 'txn_2' }))).toBe('unresolved');
    expect(await creditOf()).toBe(25 * DOLLAR);
    await assign(lostPayment({ id: 'txn_2' }));
    expect(await creditOf()).toBe(50 * DOLLAR);
  });

  test('it cannot be read', async () => {
    const body = notification('transaction.completed', { id: 7 });
    expect(await send(body)).toBe('unreadable');
    expect(await unresolvedEvents()).toMatchObject([{ event_id: eventId(body), kind: 'unreadable' }]);
    await expect(assign(body, books.organization_id, DOLLAR)).rejects.toThrow(
      expect.objectContaining({ code: 'event_not_assignable' }),
    );
    await dismissPaymentEvent(books.context, OPERATOR, eventId(body));
    expect(await send(body)).toBe('dismissed');
    expect(await unresolvedEvents()).toEqual([]);
  });
});

describe('what another product sold through the same account', () => {
  test('is no business of the books, nor are its refunds', async () => {
    expect(await send(lostPayment({ custom_data: null, product_ids: ['pro_shirt'] }))).toBe('irrelevant');
    expect(await send(adjustment('adjustment.created'))).toBe('irrelevant');
    expect(await unresolvedEvents()).toEqual([]);
  });

  test('leaves no mark on a payment that proves to be of credit: its refunds count', async () => {
    expect(await send(lostPayment({ custom_data: null, product_ids: ['pro_shirt'] }))).toBe('irrelevant');
    expect(await send(lostPayment())).toBe('applied');
    expect(await send(adjustment('adjustment.created'))).toBe('applied');
    expect(await creditOf()).toBe(15 * DOLLAR);
  });
});

describe('the operator', () => {
  test('assigns a payment: credited once, with the refunds that waited for it', async () => {
    const body = lostPayment({ custom_data: null });
    await send(body);
    await send(adjustment('adjustment.created', { cents: '500' }));
    expect(await assign(body)).toMatchObject({ outcome: 'assigned', organization_id: books.organization_id });
    expect(await creditOf()).toBe(20 * DOLLAR);
    expect(await unresolvedEvents()).toEqual([]);
    expect(await send(body)).toBe('known');
    await expect(assign(body)).rejects.toThrow(expect.objectContaining({ code: 'event_resolved' }));
    await expect(dismissPaymentEvent(books.context, OPERATOR, eventId(body))).rejects.toThrow(
      expect.objectContaining({ code: 'event_resolved' }),
    );
    expect(await creditOf()).toBe(20 * DOLLAR);
    expect(outcomes()).toEqual({ txn_1: 'assigned', adj_1: 'applied' });
  });

  test('gives the amount of a payment that has none in dollars, and no more than that of another', async () => {
    const euros = lostPayment({ currency_code: 'EUR' });
    await send(euros);
    const invalid = expect.objectContaining({ code: 'invalid_amount' });
    await expect(assign(euros)).rejects.toThrow(invalid);
    await expect(assign(euros, books.organization_id, 0)).rejects.toThrow(invalid);
    await assign(euros, books.organization_id, 27 * DOLLAR);
    expect(await creditOf()).toBe(27 * DOLLAR);
    const dollars = lostPayment({ id: 'txn_2', custom_data: null });
    await send(dollars);
    await expect(assign(dollars, books.organization_id, 1_000 * DOLLAR)).rejects.toThrow(invalid);
    expect(await creditOf()).toBe(27 * DOLLAR);
  });

  test('assigns a refund only where its payment is', async () => {
    const refund = adjustment('adjustment.created', { currency_code: 'EUR' });
    const refused = expect.objectContaining({ code: 'event_not_assignable' });
    await send(refund);
    await expect(assign(refund, books.organization_id, DOLLAR)).rejects.toThrow(refused);
    await send(lostPayment());
    await expect(assign(refund, await otherOrganization(), DOLLAR)).rejects.toThrow(refused);
    expect(await unresolvedEvents()).toHaveLength(1);
    await assign(refund, books.organization_id, DOLLAR);
    expect(await creditOf()).toBe(24 * DOLLAR);
  });

  test('assigns a payment that is more than its checkout ordered', async () => {
    await checkOutAgain();
    const body = lostPayment({ cents: '100000', product_ids: ['pro_1', 'pro_shirt'] });
    expect(await send(body)).toBe('unresolved');
    // The part that was for credit, and no more than was paid.
    await expect(assign(body, books.organization_id, 1_001 * DOLLAR)).rejects.toMatchObject({
      code: 'invalid_amount',
    });
    await assign(body, books.organization_id, 24 * DOLLAR);
    expect(await creditOf()).toBe(24 * DOLLAR);
  });

  test('assigns no refund of more than its payment', async () => {
    const refund = adjustment('adjustment.created', { currency_code: 'EUR' });
    await send(lostPayment());
    await send(refund);
    await expect(assign(refund, books.organization_id, 26 * DOLLAR)).rejects.toMatchObject({
      code: 'invalid_amount',
    });
    expect(await unresolvedEvents()).toHaveLength(1);
    await assign(refund, books.organization_id, 25 * DOLLAR);
    expect(await creditOf()).toBe(0);
  });

  describe('with a refund of more than is left of its payment', () => {
    const EUROS = adjustment('adjustment.created', { id: 'adj_2', currency_code: 'EUR' });

    beforeEach(async () => {
      await send(lostPayment());
      await send(adjustment('adjustment.created', { cents: '2000' }));
      await send(EUROS);
      expect(await assign(EUROS, books.organization_id, 10 * DOLLAR)).toMatchObject({ outcome: 'waiting' });
      expect(await creditOf()).toBe(5 * DOLLAR);
    });

    test('has it wait until another is taken back', async () => {
      const reversal = { id: 'adj_3', action: 'chargeback_reverse', cents: '2000' };
      await send(adjustment('adjustment.created', reversal));
      expect(await creditOf()).toBe(15 * DOLLAR);
      expect(outcomes()).toMatchObject({ adj_2: 'applied' });
    });

    test('can dismiss it also where an earlier version noted it as assigned', async () => {
      const assigned = { outcome: 'assigned' } as const;
      books.db.update(paymentEvents).set(assigned).where(eq(paymentEvents.external_id, 'adj_2')).run();
      expect(await dismissPaymentEvent(books.context, OPERATOR, eventId(EUROS))).toMatchObject({
        outcome: 'dismissed',
      });
      expect(await books.context.store.payments.pendingPayments()).toEqual([]);
    });

    test('can dismiss it, which cancels it and lets those pass that are possible without it', async () => {
      // Both are possible together, but not with the one that waits.
      await send(adjustment('adjustment.created', { id: 'adj_3', cents: '3000' }));
      // The refund is the older one, so that only the rule has the reversal first.
      books.clock.advance(1);
      await send(
        adjustment('adjustment.created', { id: 'adj_4', action: 'chargeback_reverse', cents: '2500' }),
      );
      expect(outcomes()).toMatchObject({ adj_3: 'waiting', adj_4: 'waiting' });
      expect(await dismissPaymentEvent(books.context, OPERATOR, eventId(EUROS))).toMatchObject({
        outcome: 'dismissed',
      });
      expect(outcomes()).toMatchObject({ adj_2: 'dismissed', adj_3: 'applied', adj_4: 'applied' });
      expect(await creditOf()).toBe(0);
      expect(await books.context.store.payments.pendingPayments()).toEqual([]);
      for (const type of ['adjustment.created', 'adjustment.updated'])
        expect(await send(adjustment(type, { id: 'adj_2', currency_code: 'EUR' }))).toBe('dismissed');
    });
  });

  test('dismisses a payment whose checkout is here: canceled with its refunds, before and after', async () => {
    await checkOutAgain();
    const body = lostPayment({ currency_code: 'EUR' });
    expect(await send(adjustment('adjustment.created'))).toBe('waiting');
    expect(await send(adjustment('adjustment.created', { id: 'adj_2', currency_code: 'EUR' }))).toBe(
      'unresolved',
    );
    await send(body);
    await dismissPaymentEvent(books.context, OPERATOR, eventId(body));
    expect(outcomes()).toEqual({ txn_1: 'dismissed', adj_1: 'dismissed', adj_2: 'dismissed' });
    expect(await send(adjustment('adjustment.created', { id: 'adj_3' }))).toBe('irrelevant');
    expect(await send(lostPayment())).toBe('dismissed');
    const rows = books.db.select().from(payments).all();
    expect(rows.map(({ status }) => status)).toEqual(['canceled', 'canceled']);
    expect(await creditOf()).toBe(0);
  });

  test('dismisses an event: it moves nothing, now or later, and nor do the refunds of a payment', async () => {
    const body = lostPayment({ custom_data: null });
    await send(adjustment('adjustment.created'));
    await send(body);
    await dismissPaymentEvent(books.context, OPERATOR, eventId(body));
    expect(await unresolvedEvents()).toEqual([]);
    expect(await send(body)).toBe('dismissed');
    expect(await send(adjustment('adjustment.created'))).toBe('dismissed');
    expect(await send(adjustment('adjustment.created', { id: 'adj_2' }))).toBe('irrelevant');
    // Paddle reports the same payment anew, as another event.
    expect(await send(lostPayment())).toBe('dismissed');
    expect(await creditOf()).toBe(0);
  });

  test('dismisses every event about the same payment with one of them', async () => {
    const [first, again] = [lostPayment({ custom_data: null }), lostPayment({ custom_data: {} })];
    await send(first);
    await send(again);
    expect(await unresolvedEvents()).toHaveLength(2);
    await dismissPaymentEvent(books.context, OPERATOR, eventId(first));
    expect(await unresolvedEvents()).toEqual([]);
  });

  test('alone sees and decides', async () => {
    const { user } = await signUp(books.context, { email: 'owner@example.com', name: 'Owner' });
    const actor = { kind: 'user', user_id: user.id } as const;
    const body = lostPayment({ custom_data: null });
    await send(body);
    const denied = expect.objectContaining({ code: 'permission_denied' });
    const { context, organization_id } = books;
    const event_id = eventId(body);
    await expect(listPaymentEvents(context, actor, { unresolved_only: true, limit: 1 })).rejects.toThrow(
      denied,
    );
    await expect(assignPaymentEvent(context, actor, { event_id, organization_id })).rejects.toThrow(denied);
    await expect(dismissPaymentEvent(context, actor, event_id)).rejects.toThrow(denied);
    await expect(dismissPaymentEvent(context, OPERATOR, 'evt_none')).rejects.toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });
});

test('every genuine event is kept with what came of it, and nothing personal', async () => {
  const customer = { name: 'Jane Roe', email: 'jane@example.com', card: { last4: '4242' } };
  const private_order = { custom_data: { ...LOST_ORDER, organization_id: 'jane@example.com' } };
  await send(lostPayment());
  await send(lostPayment({ id: 'txn_2', ...private_order }));
  await send(notification('customer.updated', { id: 'ctm_1', ...customer }));
  await send(notification('transaction.completed', { id: 'txn_3', customer, custom_data: customer }));
  await send(notification('adjustment.created', { id: 'adj_9', customer }));
  await send(transaction('transaction.canceled', { id: 'txn_4' }));
  expect(outcomes()).toEqual({
    txn_1: 'applied',
    txn_2: 'unresolved',
    ctm_1: 'irrelevant',
    txn_3: 'unresolved',
    adj_9: 'unresolved',
    txn_4: 'irrelevant',
  });
  expect(books.db.select().from(paymentEvents).all()[0]).toEqual({
    provider: 'paddle',
    event_id: eventId(lostPayment()),
    type: 'transaction.completed',
    kind: 'completed',
    occurred_at_ms: Date.UTC(2026, 0, 15),
    external_id: 'txn_1',
    payment_external_id: 'txn_1',
    payment_id: 'pay_lost',
    organization_id: books.organization_id,
    amount_micros: 25 * DOLLAR,
    outcome: 'applied',
    reason: null,
    received_at_ms: books.clock.now_ms(),
    decided_at_ms: books.clock.now_ms(),
  });
  books.db.$client.run('PRAGMA wal_checkpoint(TRUNCATE)');
  const stored = readFileSync(books.path, 'latin1');
  expect(stored).toContain('txn_3');
  for (const personal of ['Jane', 'jane@', '4242']) expect(stored).not.toContain(personal);
});

test('an event is kept or nothing of it is: credit that cannot be kept is not given', async () => {
  books.db.$client.run(
    "CREATE TRIGGER broken BEFORE INSERT ON payment_events BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  await expect(send(lostPayment())).rejects.toThrow();
  expect(await creditOf()).toBe(0);
  expect(books.db.select().from(payments).all()).toEqual([]);
});

/** Goes on with an earlier copy of the database, as an operator does after a disk was lost. */
function restore(copy: Uint8Array): void {
  // A new file: SQLite closes the old one only when its last statement is collected.
  const path = `${books.path}-restored`;
  writeFileSync(path, copy);
  const db = openDatabase(path);
  db.$client.run('PRAGMA synchronous = OFF');
  const context = contextOn(db, books.clock, books.context.identifiers);
  const { remove } = books;
  books = {
    ...books,
    path,
    db,
    context,
    remove: () => {
      db.$client.close();
      remove();
    },
  };
}

test('whatever is lost, repeated and reordered, the balances end as those of the full history', async () => {
  const order = (payment_id: string, cents: string) => ({
    cents,
    custom_data: {
      payment_id,
      organization_id: books.organization_id,
      amount_micros: Number(cents) * 10_000,
    },
  });
  type Step = { readonly deliver: number } | 'copy' | 'restore' | 'check_out';
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: fc.record({ deliver: fc.nat({ max: 7 }) }), weight: 6 },
    { arbitrary: fc.constantFrom('copy', 'restore', 'check_out'), weight: 1 },
  );
  const scenario = fc.record({
    steps: fc.array(step, { maxLength: 25 }),
    last: fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ steps, last }) => {
      books.remove();
      books = await openBooks();
      const story = [
        transaction('transaction.completed', { id: 'txn_1', ...order('pay_1', '2500') }),
        adjustment('adjustment.created', { id: 'adj_1', cents: '1000' }),
        adjustment('adjustment.updated', { id: 'adj_1', cents: '1000' }),
        adjustment('adjustment.created', { id: 'adj_2', action: 'chargeback', cents: '1500' }),
        adjustment('adjustment.created', { id: 'adj_3', action: 'chargeback_reverse', cents: '1500' }),
        transaction('transaction.completed', { id: 'txn_2', ...order('pay_2', '500') }),
        adjustment('adjustment.created', { id: 'adj_4', transaction_id: 'txn_2', cents: '500' }),
        transaction('transaction.completed', { id: 'txn_3', ...order('pay_3', '700') }),
      ];
      let copy = books.db.$client.serialize();
      for (const each of steps) {
        if (each === 'copy') copy = books.db.$client.serialize();
        else if (each === 'restore') restore(copy);
        else if (each === 'check_out') await checkOutAgain();
        else await send(story[each.deliver] ?? '');
        expectCleanAudit(books);
      }
      for (const index of last) await send(story[index] ?? '');
      const { credit_micros, paid_micros, tier } = await readOrganization(
        books.context.store,
        books.organization_id,
      );
      expect({ credit_micros, paid_micros, tier }).toEqual({
        credit_micros: 22 * DOLLAR,
        paid_micros: 22 * DOLLAR,
        tier: 1,
      });
      expect(await unresolvedEvents()).toEqual([]);
      expectCleanAudit(books);
    }),
    { numRuns: 60 },
  );
});

/** The row of the first payment, as its checkout writes it: before the events, after them, or again after a restore. */
async function checkOutAgain(): Promise<void> {
  const identifiers = { ...books.context.identifiers, id: () => 'pay_1' };
  await startTopUp(
    { ...books.context, identifiers },
    OPERATOR,
    { ...provider, createCheckout: () => Promise.resolve({ external_id: 'txn_1', url: null }) },
    { organization_id: books.organization_id, amount_micros: 25 * DOLLAR },
  );
}
