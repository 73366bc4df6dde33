import { describe, expect, test } from 'bun:test';
import { HoldNotOpen, UnknownAccount } from '../../src/ledger/errors.ts';
import { rejection } from '../support/rejection.ts';
import { LEDGER_DATABASES, type LedgerDatabase, openLedger } from './databases.ts';
import { COST_MICROS, HELD_MICROS, usageOf } from './support.ts';

const JANUARY_MS = Date.UTC(2026, 0, 31, 23, 59, 59, 999);

/** The spent and held micros of the months of all keys and of each key. */
async function amountsOf(setup: LedgerDatabase): Promise<Readonly<Record<string, readonly number[]>>> {
  const months = await setup.months();
  return Object.fromEntries(
    months.map(({ month, api_key_id, spent_micros, held_micros }) => [
      `${month} ${api_key_id === '' ? 'all' : api_key_id}`,
      [spent_micros, held_micros],
    ]),
  );
}

describe.each(LEDGER_DATABASES)('the ledger in $name', (database) => {
  test('a refused hold writes nothing, and says the limit of its project or the credit that is free', async () => {
    await using setup = await openLedger(database, 10);
    await setup.limit(setup.account, 5);
    const before = await setup.stored();
    const ask = (amount_micros: number) => setup.books.hold(setup.request('req_1', amount_micros));
    const limited = { refusal: 'project_spend_limit', project: 'proj_acme', spend_limit_micros: 5 } as const;
    expect(await ask(6)).toEqual({ held: false, ...limited });
    await setup.limit(setup.account, null);
    expect(await ask(11)).toEqual({ held: false, refusal: 'insufficient_credit', available_micros: 10 });
    expect(await setup.stored()).toEqual(before);
  });

  test('when limit and credit both refuse, the limit is named: it is checked first', async () => {
    await using setup = await openLedger(database, 0);
    await setup.limit(setup.account, 5);
    expect(await setup.books.hold(setup.request('req_1', 6))).toMatchObject({
      held: false,
      refusal: 'project_spend_limit',
    });
  });

  test('a project that spent its limit is refused even a hold of nothing, until the next UTC month', async () => {
    await using setup = await openLedger(database, 100);
    await setup.limit(setup.account, 7);
    await setup.charge(await setup.hold('req_1', 7, JANUARY_MS), 'req_1', 7);
    expect(await setup.books.hold(setup.request('req_2', 0, JANUARY_MS))).toMatchObject({
      held: false,
      refusal: 'project_spend_limit',
    });
    expect((await setup.hold('req_3', 7, JANUARY_MS + 1)).month).toBe('2026-02');
  });

  test('a charge after midnight counts in the month of its hold', async () => {
    await using setup = await openLedger(database, 100);
    // The clock of the books is in May.
    await setup.charge(await setup.hold('req_1', 9, JANUARY_MS), 'req_1', 4);
    const { project_id } = setup.account;
    expect(await setup.months()).toEqual([
      { project_id, month: '2026-01', spent_micros: 4, held_micros: 0, api_key_id: '' },
    ]);
  });

  test('a key with a limit is refused a hold that its charges and open holds leave no room for, which writes nothing', async () => {
    await using setup = await openLedger(database, 1_000);
    await setup.limitKey(10);
    const limited = {
      held: false,
      refusal: 'api_key_spend_limit',
      api_key: 'key_acme',
      monthly_limit_micros: 10,
    } as const;
    const first = await setup.holdOfKey('req_1', 6, JANUARY_MS);
    const second = await setup.holdOfKey('req_2', 4, JANUARY_MS);
    if (!first.held || !second.held) throw new Error('refused');
    const before = await setup.stored();
    expect(await setup.holdOfKey('req_3', 1, JANUARY_MS)).toEqual(limited);
    expect(await setup.stored()).toEqual(before);
    // Holds of other keys of the project do not count, and a release makes room again.
    const of_other = await setup.hold('req_4', 500, JANUARY_MS);
    await setup.release(second.hold, 'req_2');
    await setup.charge(first.hold, 'req_1', 2);
    expect(await setup.holdOfKey('req_5', 9, JANUARY_MS)).toEqual(limited);
    const third = await setup.holdOfKey('req_6', 8, JANUARY_MS);
    if (!third.held) throw new Error('refused');
    await setup.release(of_other, 'req_4');
    await setup.charge(third.hold, 'req_6', 8);
    // Even a hold of nothing is refused where the limit is spent, until the next month.
    expect(await setup.holdOfKey('req_7', 0, JANUARY_MS)).toEqual(limited);
    expect(await setup.holdOfKey('req_8', 10, JANUARY_MS + 1)).toMatchObject({ held: true });
    await setup.limitKey(null);
    expect(await setup.holdOfKey('req_9', 900, JANUARY_MS)).toMatchObject({ held: true });
    expect(await amountsOf(setup)).toEqual({
      '2026-01 all': [10, 900],
      '2026-01 key_acme': [10, 900],
      '2026-02 all': [0, 10],
      '2026-02 key_acme': [0, 10],
    });
    expect((await setup.audit()).ok).toBe(true);
  });

  test('the limit of a project is compared with what all of its keys spent and hold, in one turn and over many', async () => {
    await using setup = await openLedger(database, 1_000);
    await setup.limit(setup.account, 20);
    const ask = (request_id: string, amount_micros: number, api_key_id?: string) => {
      const request = setup.request(request_id, amount_micros, JANUARY_MS);
      return setup.books.hold(api_key_id === undefined ? request : { ...request, api_key_id });
    };
    const [first, second, third, without] = await Promise.all([
      ask('req_1', 8, 'key_1'),
      ask('req_2', 8, 'key_2'),
      ask('req_3', 5, 'key_3'),
      ask('req_4', 3),
    ]);
    if (!first.held || !second.held || !without.held) throw new Error('refused');
    expect(third).toMatchObject({ refusal: 'project_spend_limit' });
    expect(await ask('req_5', 2, 'key_4')).toMatchObject({ refusal: 'project_spend_limit' });
    await Promise.all([
      setup.charge(first.hold, 'req_1', 7),
      setup.release(second.hold, 'req_2'),
      setup.charge(without.hold, 'req_4', 2),
    ]);
    expect(await ask('req_6', 12, 'key_4')).toMatchObject({ refusal: 'project_spend_limit' });
    expect(await ask('req_7', 11, 'key_4')).toMatchObject({ held: true });
    expect(await amountsOf(setup)).toEqual({
      '2026-01 all': [9, 11],
      '2026-01 key_1': [7, 0],
      '2026-01 key_2': [0, 0],
      '2026-01 key_4': [0, 11],
    });
    expect((await setup.audit()).ok).toBe(true);
  });

  test('the limit of the project is checked before the limit of the key, and that before the credit', async () => {
    await using setup = await openLedger(database, 1);
    await setup.limit(setup.account, 5);
    await setup.limitKey(5);
    const refusal = async () => await setup.holdOfKey('req_1', 6);
    expect(await refusal()).toMatchObject({ refusal: 'project_spend_limit' });
    await setup.limit(setup.account, null);
    expect(await refusal()).toMatchObject({ refusal: 'api_key_spend_limit' });
    await setup.limitKey(null);
    expect(await refusal()).toMatchObject({ refusal: 'insufficient_credit' });
  });

  test('of many holds at once exactly as many are placed as the limit of the key covers, also after a crash', async () => {
    await using setup = await openLedger(database);
    await setup.limitKey(5 * HELD_MICROS);
    const ask = async (round: string) => {
      const requests = Array.from({ length: 40 }, (_, number) => `req_${round}_${number}`);
      const results = await Promise.all(requests.map((id) => setup.holdOfKey(id, HELD_MICROS)));
      return results.flatMap((result, index) =>
        result.held ? [{ hold: result.hold, request_id: requests[index] ?? '' }] : [],
      );
    };
    const placed = await ask('first');
    expect(placed).toHaveLength(5);
    await Promise.all(placed.slice(2).map(({ hold, request_id }) => setup.charge(hold, request_id)));
    await setup.crash();
    expect(await setup.books.recover()).toBe(2);
    const spent_micros = 3 * COST_MICROS;
    const room = Math.floor((5 * HELD_MICROS - spent_micros) / HELD_MICROS);
    const again = await ask('second');
    expect(again).toHaveLength(room);
    const of_key = (await setup.months()).filter(({ api_key_id }) => api_key_id !== '');
    expect(of_key).toMatchObject([{ spent_micros, held_micros: room * HELD_MICROS }]);
    await Promise.all(again.map(({ hold, request_id }) => setup.release(hold, request_id)));
    await setup.expectSettled(3);
  });

  test('a refund can bring the balance below zero, and then nothing can be held', async () => {
    await using setup = await openLedger(database, 10);
    await setup.charge(await setup.hold('req_1', 8), 'req_1', 8);
    await setup.addPayment(setup.account, 'pay_2', 'refund', 10);
    await setup.ledger.refund(setup.movement(10, 'pay_2', 1));
    expect((await setup.organizations())[0]).toMatchObject({ credit_micros: -8, paid_micros: 0 });
    expect(await setup.books.hold(setup.request('req_2', 0))).toEqual({
      held: false,
      refusal: 'insufficient_credit',
      available_micros: -8,
    });
  });

  test('a payment is entered once: again, it changes nothing', async () => {
    await using setup = await openLedger(database, 10);
    const before = await setup.stored();
    const again = setup.movement(10, 'pay_1', 2);
    expect(setup.isDuplicate(await rejection(setup.ledger.topUp(again)))).toBe(true);
    expect(setup.isDuplicate(await rejection(setup.ledger.refund(again)))).toBe(true);
    expect(await setup.stored()).toEqual(before);
  });

  test('costs and amounts that no honest caller gives are refused and change nothing', async () => {
    await using setup = await openLedger(database, 10);
    await setup.hold('req_1', 5);
    const before = await setup.stored();
    for (const amount of [-1, 0.5, Number.NaN, 2 ** 53])
      expect(await rejection(setup.books.hold(setup.request('req_2', amount)))).toBeInstanceOf(RangeError);
    await expect(setup.pay(0, 'pay_2')).rejects.toThrow();
    expect(setup.isDuplicate(await rejection(setup.books.hold(setup.request('req_1', 1))))).toBe(true);
    const unknown = { ...setup.request('req_3', 1), project_id: 'proj_other' };
    expect(await rejection(setup.books.hold(unknown))).toBeInstanceOf(UnknownAccount);
    const nobody = { ...setup.movement(1, 'pay_1'), organization_id: 'org_other' };
    expect(await rejection(setup.ledger.topUp(nobody))).toBeInstanceOf(UnknownAccount);
    expect(await setup.stored()).toEqual(before);
  });

  test('a charge of a cost that no honest caller gives is refused, and its hold is free', async () => {
    await using setup = await openLedger(database, 100);
    for (const cost of [-1, 6, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const request_id = `req_${cost}`;
      const hold = await setup.hold(request_id, 5);
      const [answered, failed] = [200, 503].map((status) => usageOf(setup.account, request_id, 1, status, 0));
      if (answered === undefined || failed === undefined) throw new Error('no usage row');
      expect(await rejection(setup.books.charge(hold, cost, answered, failed))).toBeInstanceOf(RangeError);
    }
    expect((await setup.organizations())[0]).toMatchObject({ credit_micros: 100, held_micros: 0 });
    expect(await setup.kinds()).toEqual([]);
  });

  test("a project of another organization cannot spend this one's credit", async () => {
    await using setup = await openLedger(database, 10);
    const other = { organization_id: 'org_other', project_id: 'proj_other', api_key_id: 'key_other' };
    await setup.addAccount(other);
    const request = { ...setup.request('req_1', 1), project_id: other.project_id };
    expect(await rejection(setup.books.hold(request))).toBeInstanceOf(UnknownAccount);
  });

  test('credit for exactly N requests gives exactly N successes among many parallel callers', async () => {
    const [requests, cost, worst_case, affordable] = [500, 3, 10, 137];
    await using setup = await openLedger(database, affordable * cost + (worst_case - cost));

    /** A client that asks again as long as it is only the holds of others that stand in its way. */
    async function client(client_id: string): Promise<'charged' | 'refused'> {
      for (let attempt = 0; ; attempt += 1) {
        const request_id = `${client_id}_${attempt}`;
        const answer = await setup.books.hold(setup.request(request_id, worst_case));
        if (answer.held) {
          await setup.charge(answer.hold, request_id, cost);
          return 'charged';
        }
        // The credit only goes down: what it does not cover now, it never does.
        const [organization] = await setup.organizations();
        if (organization === undefined || organization.credit_micros < worst_case) return 'refused';
      }
    }

    const outcomes = await Promise.all(
      Array.from({ length: requests }, (_, number) => client(`req_${number}`)),
    );
    expect(outcomes.filter((outcome) => outcome === 'charged')).toHaveLength(affordable);
    expect((await setup.organizations())[0]).toMatchObject({
      credit_micros: worst_case - cost,
      held_micros: 0,
    });
    await setup.expectClean();
  });

  test('holds that are all asked for at once never reserve more than the credit', async () => {
    await using setup = await openLedger(database, 1_000);
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, number) => setup.books.hold(setup.request(`req_${number}`, 10))),
    );
    expect(answers.map(({ held }) => held)).toEqual(answers.map((_, number) => number < 100));
  });

  test('one that PostgreSQL or SQLite refuses does not keep the others of its turn from being written', async () => {
    await using setup = await openLedger(database);
    const ids = Array.from({ length: 20 }, (_, number) => `req_${number % 15}`);
    const answers = await Promise.allSettled(ids.map((id) => setup.books.hold(setup.request(id, 1))));
    const placed = answers.filter(({ status }) => status === 'fulfilled').length;
    expect([placed, (await setup.organizations())[0]?.held_micros]).toEqual([15, 15]);
    for (const answer of answers)
      if (answer.status === 'rejected') expect(setup.isDuplicate(answer.reason)).toBe(true);
  });

  test('an ended hold cannot be charged again, nor one of another database', async () => {
    await using setup = await openLedger(database);
    const hold = await setup.hold('req_1');
    await setup.charge(hold, 'req_1');
    const before = await setup.stored();
    expect(await rejection(setup.charge(hold, 'req_1'))).toBeInstanceOf(HoldNotOpen);
    expect(await rejection(setup.charge({ ...hold, entry_id: 999_999 }, 'req_2'))).toBeInstanceOf(
      HoldNotOpen,
    );
    await setup.books.release(hold, null);
    expect(await setup.stored()).toEqual(before);
  });
});
