import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { PaidMovement, PaymentMovement } from '../../src/store/ledger-records.ts';
import { paymentRow, propertySeed } from '../ledger/support.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';

const organization_id = 'org_acme';

describe.each(DATABASES)('what payments move in $name', ({ open }) => {
  let database: OpenDatabase;
  let payments: number;
  beforeEach(async () => {
    database = await open();
    payments = 0;
    await addOrganization(organization_id);
  });
  afterEach(() => database.close());

  const addOrganization = (id: string) =>
    database.insert({ organizations: [{ id, name: id, created_at_ms: 0 }] });

  /** Inserts a payment, and what it moves. */
  const movementOf = async (
    kind: 'top_up' | 'refund',
    amount_micros: number,
    values: Partial<PaymentMovement> = {},
  ): Promise<PaymentMovement> => {
    payments += 1;
    const payment_id = `pay_${payments}`;
    await database.insert({
      payments: [paymentRow({ organization_id }, payment_id, kind, 1)],
    });
    return { organization_id, amount_micros, payment_id, at_ms: payments, ...values };
  };
  const topUp = async (amount_micros: number, values: Partial<PaidMovement> = {}) =>
    await database.store.ledger.topUp({
      ...(await movementOf('top_up', amount_micros)),
      ...values,
    });
  const refund = async (amount_micros: number, values: Partial<PaymentMovement> = {}) =>
    await database.store.ledger.refund(await movementOf('refund', amount_micros, values));

  /** Everything that a movement can change. */
  const state = async (id = organization_id) => {
    const found = await database.store.accounts.findOrganization(id);
    const { items } = await database.movements.movementLines({
      organization_id: id,
      charges_by: 'request',
      limit: 1_000,
    });
    return {
      credit_micros: found?.credit_micros,
      paid_micros: found?.paid_micros,
      first_paid_at_ms: found?.first_paid_at_ms,
      held_micros: found?.held_micros,
      movements: items.map(({ kind, amount_micros, payment_id }) => [kind, amount_micros, payment_id]),
    };
  };

  test('a top-up adds credit and to what was paid, of its organization only', async () => {
    await addOrganization('org_other');
    await topUp(5);
    await topUp(2 ** 52);
    expect(await state()).toEqual({
      credit_micros: 5 + 2 ** 52,
      paid_micros: 5 + 2 ** 52,
      first_paid_at_ms: 1,
      held_micros: 0,
      movements: [
        ['top_up', 2 ** 52, 'pay_2'],
        ['top_up', 5, 'pay_1'],
      ],
    });
    expect(await state('org_other')).toMatchObject({ credit_micros: 0, paid_micros: 0, movements: [] });
  });

  test('the first payment is the earliest, whatever order they are entered in', async () => {
    await topUp(5, { at_ms: 300 });
    await topUp(5, { at_ms: 200 });
    await topUp(5, { at_ms: 400 });
    expect(await state()).toMatchObject({ first_paid_at_ms: 200 });
  });

  test('a refund takes credit back, below zero if it was spent', async () => {
    await topUp(100);
    await database.run(`UPDATE organizations SET credit_micros = 10 WHERE id = '${organization_id}'`);
    await refund(40);
    expect(await state()).toMatchObject({ credit_micros: -30, paid_micros: 60, first_paid_at_ms: 1 });
  });

  test('the days since the first payment start anew after everything was refunded', async () => {
    await topUp(100);
    await refund(99);
    expect(await state()).toMatchObject({ paid_micros: 1, first_paid_at_ms: 1 });
    await refund(1);
    expect(await state()).toMatchObject({ paid_micros: 0, first_paid_at_ms: null });
    await topUp(7, { at_ms: 500 });
    expect(await state()).toMatchObject({ paid_micros: 7, first_paid_at_ms: 500 });
  });

  test('they count from the payment whose refund is taken back', async () => {
    await topUp(100);
    await refund(100);
    await topUp(100, { at_ms: 500, paid_at_ms: 1 });
    expect(await state()).toMatchObject({ paid_micros: 100, first_paid_at_ms: 1 });
  });

  test('a refund of more than was paid in all is refused and changes nothing', async () => {
    await topUp(100);
    await refund(30);
    const before = await state();
    await expect(refund(71)).rejects.toMatchObject({ name: 'RefundExceedsPayments' });
    expect(await state()).toEqual(before);
  });

  test('an organization that does not exist is refused', async () => {
    const unknown = { organization_id: 'org_unknown' };
    await expect(topUp(5, unknown)).rejects.toMatchObject({ name: 'UnknownAccount' });
    await expect(refund(5, unknown)).rejects.toMatchObject({ name: 'UnknownAccount' });
    expect(await state()).toMatchObject({ credit_micros: 0, movements: [] });
  });

  test('a payment is entered once: again, it is refused and changes nothing', async () => {
    const movement = await movementOf('top_up', 10);
    await database.store.ledger.topUp(movement);
    const before = await state();
    await expect(database.store.ledger.topUp(movement)).rejects.toThrow();
    await expect(database.store.ledger.refund(movement)).rejects.toThrow();
    await expect(database.store.ledger.topUp({ ...movement, payment_id: 'pay_unknown' })).rejects.toThrow();
    expect(await state()).toEqual(before);
  });

  test.each([0, -1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1])(
    '%p micro-dollars are no amount',
    async (amount) => {
      await topUp(100);
      const before = await state();
      await expect(topUp(amount)).rejects.toThrow(RangeError);
      await expect(refund(amount)).rejects.toThrow(RangeError);
      expect(await state()).toEqual(before);
    },
  );

  test('a transaction that is refused leaves nothing of its movements', async () => {
    await topUp(100);
    const before = await state();
    const [first, second] = [await movementOf('top_up', 5), await movementOf('refund', 200)];
    const work = database.store.transaction(async ({ ledger }) => {
      await ledger.topUp(first);
      await ledger.refund(second);
    });
    await expect(work).rejects.toMatchObject({ name: 'RefundExceedsPayments' });
    expect(await state()).toEqual(before);
  });

  test('what two processes enter at once adds up: no movement is lost, and no more is refunded than was paid', async () => {
    const seed = propertySeed('movements at once');
    const movement = fc.record({
      kind: fc.constantFrom('top_up' as const, 'refund' as const),
      amount: fc.integer({ min: 1, max: 50 }),
      in_transaction: fc.boolean(),
      elsewhere: fc.boolean(),
    });
    await topUp(100);
    const other = await database.another();
    await fc.assert(
      fc.asyncProperty(fc.array(movement, { minLength: 2, maxLength: 12 }), async (given) => {
        const before = await state();
        const moved = await Promise.all(
          given.map(async ({ kind, amount }) => await movementOf(kind, amount)),
        );
        const outcomes = await Promise.allSettled(
          given.map(({ kind, in_transaction, elsewhere }, index) => {
            const asked = moved[index];
            if (asked === undefined) throw new RangeError(`there is no movement ${index}`);
            const store = elsewhere ? other : database.store;
            const move = ({ ledger }: Pick<typeof store, 'ledger'>) =>
              kind === 'top_up' ? ledger.topUp(asked) : ledger.refund(asked);
            return in_transaction ? store.transaction(move) : move(store);
          }),
        );
        let sum = before.paid_micros ?? 0;
        let entered = before.movements.length;
        for (const [index, { status }] of outcomes.entries()) {
          const { kind = 'top_up', amount = 0 } = given[index] ?? {};
          if (status === 'rejected') {
            expect(kind).toBe('refund');
            continue;
          }
          sum += kind === 'top_up' ? amount : -amount;
          entered += 1;
        }
        const after = await state();
        expect(after.paid_micros).toBe(sum);
        expect(after.credit_micros).toBe(sum);
        expect(after.movements).toHaveLength(entered);
      }),
      { seed, numRuns: 15 },
    );
  }, 120_000);
});
