import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { KeptEvent, Payment, PaymentRecords } from '../../src/store/payment-records.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { BYTEWISE, SHUFFLED } from './rows.ts';

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
const eventIds = (rows: readonly KeptEvent[]) => rows.map(({ event_id }) => event_id);

const payment = (id: string, values: Partial<Payment> = {}): Payment => ({
  id,
  organization_id: 'org_a',
  provider: 'paddle',
  external_id: `txn_${id}`,
  kind: 'top_up',
  amount_micros: 5_000_000,
  status: 'pending',
  refunds_payment_id: null,
  created_by_user_id: null,
  created_at_ms: 1_000,
  settled_at_ms: null,
  ...values,
});

const event = (event_id: string, values: Partial<KeptEvent> = {}): KeptEvent => ({
  provider: 'paddle',
  event_id,
  type: 'transaction.completed',
  kind: 'completed',
  occurred_at_ms: 900,
  external_id: 'txn_1',
  payment_external_id: 'txn_1',
  payment_id: 'pay_gone',
  organization_id: 'org_gone',
  amount_micros: 5_000_000,
  outcome: 'unresolved',
  reason: 'no such payment',
  received_at_ms: 1_000,
  decided_at_ms: 1_000,
  ...values,
});

const NOTHING_KNOWN = {
  kind: 'unreadable',
  occurred_at_ms: null,
  external_id: null,
  payment_external_id: null,
  payment_id: null,
  organization_id: null,
  amount_micros: null,
  reason: null,
} as const;

describe.each(DATABASES)('payments in $name', ({ open }) => {
  let database: OpenDatabase;
  let payments: PaymentRecords;
  beforeEach(async () => {
    database = await open();
    payments = database.store.payments;
    await database.insert({
      organizations: ['org_a', 'org_b'].map((id) => ({ id, name: id, created_at_ms: 0 })),
    });
  });
  afterEach(() => database.close());

  const insert = async (...rows: Payment[]) => {
    for (const row of rows) await payments.insertPayment(row);
  };
  const keep = async (...events: KeptEvent[]) => {
    for (const kept of events) await payments.keepEvent(kept, []);
  };

  test('a payment is found as it was inserted, by its id and by that at its provider', async () => {
    const large = payment('pay_1', { amount_micros: Number.MAX_SAFE_INTEGER, settled_at_ms: 2 ** 45 });
    await insert(large, payment('pay_2', { provider: 'manual', external_id: 'txn_pay_1' }));
    expect(await payments.findPayment('pay_1')).toEqual(large);
    expect(await payments.findExternalPayment('paddle', 'txn_pay_1')).toEqual(large);
    expect(
      ids([await payments.findExternalPayment('manual', 'txn_pay_1')].filter((row) => row !== undefined)),
    ).toEqual(['pay_2']);
    for (const id of ['pay_3', 'PAY_1', '', 'pay_1\u0000']) {
      expect(await payments.findPayment(id)).toBeUndefined();
      expect(await payments.findExternalPayment('paddle', id)).toBeUndefined();
    }
  });

  test('a payment is inserted once: neither its id nor that at its provider twice', async () => {
    await insert(payment('pay_1'));
    await expect(insert(payment('pay_1', { external_id: 'other' }))).rejects.toThrow();
    await expect(insert(payment('pay_2', { external_id: 'txn_pay_1' }))).rejects.toThrow();
    await expect(insert(payment('pay_2', { organization_id: 'org_unknown' }))).rejects.toThrow();
    await expect(insert(payment('pay_2', { amount_micros: 0 }))).rejects.toThrow();
    expect(ids(await payments.pendingPayments())).toEqual(['pay_1']);
  });

  test('what is not settled is listed oldest first, of one organization or of all', async () => {
    await insert(
      payment('late', { created_at_ms: 1_001 }),
      ...SHUFFLED.map((id) => payment(id)),
      payment('settled', { status: 'completed' }),
      payment('canceled', { status: 'canceled' }),
      payment('early', { organization_id: 'org_b', created_at_ms: 999 }),
    );
    expect(ids(await payments.pendingPayments())).toEqual(['early', ...BYTEWISE, 'late']);
    expect(ids(await payments.pendingPayments('org_a'))).toEqual([...BYTEWISE, 'late']);
    expect(await payments.pendingPayments('org_unknown')).toEqual([]);
  });

  test('a payment is settled with what was paid, and no other', async () => {
    await insert(payment('pay_1'), payment('pay_2'));
    const settled = { status: 'completed', amount_micros: 7, settled_at_ms: 2_000 } as const;
    await payments.settlePayment('pay_1', settled);
    await payments.settlePayment('pay_unknown', settled);
    expect(await payments.findPayment('pay_1')).toEqual(payment('pay_1', settled));
    expect(await payments.findPayment('pay_2')).toEqual(payment('pay_2'));
  });

  test('the refunds of a payment and their reversals are listed oldest first', async () => {
    const ofFirst = { refunds_payment_id: 'pay_1' };
    await insert(
      payment('pay_1'),
      payment('pay_2'),
      payment('late', { ...ofFirst, kind: 'refund', created_at_ms: 1_001 }),
      ...SHUFFLED.map((id) => payment(id, { ...ofFirst, kind: 'refund' })),
      payment('reversal', { ...ofFirst, created_at_ms: 1_002 }),
      payment('other', { kind: 'refund', refunds_payment_id: 'pay_2' }),
      payment('by hand', { kind: 'refund' }),
    );
    expect(ids(await payments.returnsOf('pay_1'))).toEqual([...BYTEWISE, 'late', 'reversal']);
    expect(await payments.returnsOf('pay_3')).toEqual([]);
  });

  test('the newest refunds and reversals of an organization are listed newest first, as many as are asked for', async () => {
    await insert(
      payment('pay_1'),
      ...SHUFFLED.map((id) => payment(id, { kind: 'refund' })),
      payment('reversal', { refunds_payment_id: 'pay_1', created_at_ms: 1_002 }),
      payment('other', { organization_id: 'org_b', kind: 'refund' }),
    );
    const newest = ['reversal', ...BYTEWISE.toReversed()];
    expect(ids(await payments.returnsTo('org_a', 100))).toEqual(newest);
    expect(ids(await payments.returnsTo('org_a', 3))).toEqual(newest.slice(0, 3));
  });

  test('the first credit came with the first top-up that was completed', async () => {
    expect(await payments.firstCredit_ms('org_a')).toBeUndefined();
    await insert(
      payment('pending', { settled_at_ms: 1 }),
      payment('canceled', { status: 'canceled', settled_at_ms: 2 }),
      payment('refund', { status: 'completed', kind: 'refund', settled_at_ms: 3 }),
      payment('other', { status: 'completed', organization_id: 'org_b', settled_at_ms: 4 }),
    );
    expect(await payments.firstCredit_ms('org_a')).toBeUndefined();
    await insert(
      payment('second', { status: 'completed', settled_at_ms: 6 }),
      payment('first', { status: 'completed', settled_at_ms: 5 }),
    );
    expect(await payments.firstCredit_ms('org_a')).toBe(5);
  });

  test('what was paid through a provider is its completed top-ups less its completed refunds', async () => {
    const done = { status: 'completed' } as const;
    expect(await payments.paidThrough('paddle', 'org_a')).toBe(0);
    await insert(
      payment('1', { ...done, amount_micros: 2 ** 50 }),
      payment('2', { ...done, amount_micros: 10 }),
      payment('3', { ...done, kind: 'refund', amount_micros: 3 }),
      payment('4', { amount_micros: 100 }),
      payment('5', { ...done, provider: 'manual', amount_micros: 1_000 }),
      payment('6', { ...done, organization_id: 'org_b', amount_micros: 10_000 }),
      payment('7', { ...done, organization_id: 'org_b', kind: 'refund', amount_micros: 10_001 }),
    );
    expect(await payments.paidThrough('paddle', 'org_a')).toBe(2 ** 50 + 7);
    expect(await payments.paidThrough('paddle', 'org_b')).toBe(-1);
  });

  test('an event is found as it was kept, of its provider or of any', async () => {
    const unreadable = event('evt_2', NOTHING_KNOWN);
    await keep(event('evt_1'), unreadable);
    expect(await payments.findEvent('evt_1')).toEqual(event('evt_1'));
    expect(await payments.findEvent('evt_2', 'paddle')).toEqual(unreadable);
    expect(await payments.findEvent('evt_1', 'manual')).toBeUndefined();
    expect(await payments.findEvent('EVT_1')).toBeUndefined();
  });

  test('events are listed newest first, with one outcome or with any, as many as are asked for', async () => {
    await keep(
      ...SHUFFLED.map((id) => event(id)),
      event('late', { received_at_ms: 1_001, outcome: 'applied' }),
      event('early', { received_at_ms: 999 }),
    );
    const newest = ['late', ...BYTEWISE.toReversed(), 'early'];
    expect(eventIds(await payments.listEvents(100))).toEqual(newest);
    expect(eventIds(await payments.listEvents(2))).toEqual(newest.slice(0, 2));
    expect(eventIds(await payments.listEvents(100, 'unresolved'))).toEqual(newest.slice(1));
    expect(await payments.listEvents(100, 'dismissed')).toEqual([]);
    expect(await payments.countEvents('unresolved')).toBe(newest.length - 1);
    expect(await payments.countEvents('dismissed')).toBe(0);
  });

  test('the events of an organization name it or are about its payments', async () => {
    await insert(payment('a', { external_id: 'txn_1' }), payment('b', { organization_id: 'org_b' }));
    const refund = { kind: 'refunded', organization_id: null } as const;
    await keep(
      event('named', { external_id: 'txn_2', payment_external_id: 'txn_2', organization_id: 'org_a' }),
      event('completed', { received_at_ms: 1_001 }),
      event('refunded', { ...refund, external_id: 'adj_1', received_at_ms: 1_002 }),
      event('of another', { payment_external_id: 'txn_b' }),
      event('of another provider', { provider: 'manual' }),
      event('of none', NOTHING_KNOWN),
    );
    expect(eventIds(await payments.eventsOf('org_a', 100))).toEqual(['refunded', 'completed', 'named']);
    expect(eventIds(await payments.eventsOf('org_a', 1))).toEqual(['refunded']);
    expect(eventIds(await payments.eventsOf('org_b', 100))).toEqual(['of another']);
  });

  test('the refunds and reversals of a payment are listed in the order in which they came', async () => {
    const refunded = { kind: 'refunded', external_id: 'adj_1', outcome: 'waiting' } as const;
    await keep(
      event('reversal', { ...refunded, kind: 'refund_reversed', received_at_ms: 1_001 }),
      ...SHUFFLED.map((id) => event(id, refunded)),
      event('applied', { ...refunded, outcome: 'applied' }),
      event('of another', { ...refunded, payment_external_id: 'txn_2' }),
      event('of another provider', { ...refunded, provider: 'manual' }),
      event('completed', { outcome: 'waiting' }),
    );
    const found = await payments.returnEvents('paddle', 'txn_1', 'waiting');
    expect(eventIds(found)).toEqual([...BYTEWISE, 'reversal']);
  });

  test('whether there is an event about this very thing depends on all that identifies it', async () => {
    await keep(event('evt_1', { outcome: 'applied' }));
    const subject = { kind: 'completed', external_id: 'txn_1', payment_external_id: 'txn_1' } as const;
    expect(await payments.hasEvent('paddle', subject, ['waiting', 'applied'])).toBe(true);
    expect(await payments.hasEvent('paddle', subject, ['waiting'])).toBe(false);
    expect(await payments.hasEvent('paddle', subject, [])).toBe(false);
    expect(await payments.hasEvent('manual', subject, ['applied'])).toBe(false);
    for (const other of [
      { kind: 'canceled' },
      { external_id: 'txn_2' },
      { payment_external_id: 'txn_2' },
    ] as const) {
      expect(await payments.hasEvent('paddle', { ...subject, ...other }, ['applied'])).toBe(false);
    }
  });

  test('an event that is kept again is replaced if its outcome allows it, but for its time of arrival', async () => {
    await keep(event('evt_1'), event('evt_2', { outcome: 'applied' }));
    const again = (id: string) =>
      event(id, {
        ...NOTHING_KNOWN,
        outcome: 'waiting',
        type: 'other',
        received_at_ms: 3_000,
        decided_at_ms: 3_001,
      });
    for (const id of ['evt_1', 'evt_2']) await payments.keepEvent(again(id), ['unresolved', 'waiting']);
    expect(await payments.findEvent('evt_1')).toEqual({ ...again('evt_1'), received_at_ms: 1_000 });
    expect(await payments.findEvent('evt_2')).toEqual(event('evt_2', { outcome: 'applied' }));
    await payments.keepEvent(event('evt_1'), []);
    expect(await payments.findEvent('evt_1')).toEqual({ ...again('evt_1'), received_at_ms: 1_000 });
  });

  test('sixteen copies of an event that are kept at once are one event', async () => {
    await Promise.all(Array.from({ length: 16 }, () => payments.keepEvent(event('evt_1'), ['unresolved'])));
    expect(await payments.listEvents(100)).toEqual([event('evt_1')]);
  });

  test('a decision changes an event that has one of the outcomes, and takes its reason away', async () => {
    const decision = { outcome: 'assigned', decided_at_ms: 4_000 } as const;
    await keep(
      event('evt_1'),
      event('evt_2', { outcome: 'applied' }),
      event('evt_1', { provider: 'manual' }),
    );
    await payments.decideEvent(event('evt_1'), ['unresolved'], decision);
    await payments.decideEvent(event('evt_2'), ['unresolved'], decision);
    await payments.decideEvent(event('evt_unknown'), ['unresolved'], decision);
    expect(await payments.findEvent('evt_1', 'paddle')).toEqual(
      event('evt_1', { ...decision, reason: null }),
    );
    expect(await payments.findEvent('evt_2')).toEqual(event('evt_2', { outcome: 'applied' }));
    expect(await payments.findEvent('evt_1', 'manual')).toEqual(event('evt_1', { provider: 'manual' }));
    await payments.decideEvent(event('evt_1'), ['assigned'], { ...decision, organization_id: 'org_b' });
    expect(await payments.findEvent('evt_1', 'paddle')).toMatchObject({ organization_id: 'org_b' });
  });

  test('a decision about a thing changes every event about it that has one of the outcomes', async () => {
    await keep(
      event('evt_1'),
      event('evt_2', { outcome: 'waiting' }),
      event('evt_3', { outcome: 'applied' }),
      event('evt_4', { external_id: 'txn_2' }),
    );
    const subject = { kind: 'completed', external_id: 'txn_1', payment_external_id: 'txn_1' } as const;
    const decision = { outcome: 'dismissed', decided_at_ms: 4_000 } as const;
    await payments.decideEventsAbout('paddle', subject, ['unresolved', 'waiting'], decision);
    const found = await payments.listEvents(100);
    expect(found.map(({ event_id, outcome, reason }) => [event_id, outcome, reason])).toEqual([
      ['evt_4', 'unresolved', 'no such payment'],
      ['evt_3', 'applied', 'no such payment'],
      ['evt_2', 'dismissed', null],
      ['evt_1', 'dismissed', null],
    ]);
  });
});
