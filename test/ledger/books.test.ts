import { describe, expect, jest, test } from 'bun:test';
import { runAudit } from '../../db/sqlite/audit.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { organizations } from '../../db/sqlite/schema.ts';
import { SqliteBooks } from '../../db/sqlite/sqlite-books.ts';
import { DurableBooks, type LedgerWriter } from '../../src/ledger/durable-books.ts';
import { HoldNotOpen } from '../../src/ledger/errors.ts';
import { turns } from '../support/event-loop.ts';
import { Gate } from '../support/faults.ts';
import { rejection } from '../support/rejection.ts';
import { LEDGER_DATABASES, openLedger } from './databases.ts';
import {
  COST_MICROS,
  CREDIT_MICROS,
  HELD_MICROS,
  LedgerSetup,
  NOW_MS,
  PROCESS_ID,
  usageOf,
} from './support.ts';

describe.each(LEDGER_DATABASES)('the books in $name', (database) => {
  test('a charge and its usage row are one commit', async () => {
    await using setup = await openLedger(database);
    await setup.charge(await setup.hold('req_1'), 'req_1');
    expect([await setup.kinds(), await setup.statuses()]).toEqual([['hold', 'charge'], [200]]);
    await setup.expectSettled(1);
  });

  test('a charge that cannot be committed rejects, and its hold is released as soon as it can be', async () => {
    await using setup = await openLedger(database);
    const holds = await Promise.all(['req_1', 'req_2'].map((id) => setup.hold(id)));
    const unlock = await setup.lock();
    const charges = await Promise.allSettled(
      holds.map((hold, number) => setup.charge(hold, `req_${number + 1}`)),
    );
    expect(charges).toEqual(holds.map(() => ({ status: 'rejected', reason: setup.unavailable })));
    expect(setup.books.unwritten).toBe(2);
    const busy: (typeof setup.problems)[number] = ['release', setup.unavailable];
    expect(setup.problems).toEqual([busy, busy]);
    expect(setup.settled).toEqual([]);
    await unlock();
    await setup.books.whenSettled();
    expect([setup.problems.length, setup.settled]).toEqual([2, [2]]);
    expect([await setup.kinds(), await setup.statuses()]).toEqual([[], [503, 503]]);
    await setup.expectSettled(0);
  });

  test('a release that cannot be written resolves, and is written as soon as it can be', async () => {
    await using setup = await openLedger(database);
    const hold = await setup.hold('req_1');
    const unlock = await setup.lock();
    await setup.release(hold, 'req_1');
    expect(setup.books.unwritten).toBe(1);
    expect(setup.problems).toEqual([['release', setup.unavailable]]);
    await unlock();
    await setup.books.whenSettled();
    expect([setup.problems.length, setup.settled]).toEqual([1, [1]]);
    expect([await setup.kinds(), await setup.statuses()]).toEqual([[], [502]]);
    await setup.expectSettled(0);
  });

  test('a hold ends once, whatever is asked for after or beside the first end', async () => {
    await using setup = await openLedger(database);
    const hold = await setup.hold('req_1');
    const [charged, again] = await Promise.allSettled([
      setup.charge(hold, 'req_1'),
      setup.charge(hold, 'req_1'),
      setup.release(hold, 'req_1'),
    ]);
    expect(charged).toMatchObject({ status: 'fulfilled' });
    expect(again).toMatchObject({ status: 'rejected', reason: expect.any(HoldNotOpen) });
    await setup.release(hold, 'req_1');
    expect(await setup.kinds()).toEqual(['hold', 'charge']);
    await setup.expectSettled(1);
  });

  test('a hold that waits for its release cannot be charged', async () => {
    await using setup = await openLedger(database);
    const hold = await setup.hold('req_1');
    const unlock = await setup.lock();
    await setup.release(hold, 'req_1');
    await unlock();
    await expect(setup.charge(hold, 'req_1')).rejects.toBeInstanceOf(HoldNotOpen);
    await setup.books.whenSettled();
    await setup.expectSettled(0);
  });

  test('a charge that is wrong in itself releases the hold at once', async () => {
    await using setup = await openLedger(database);
    const [too_much, no_row] = await Promise.all([setup.hold('req_1'), setup.hold('req_2')]);
    const charged = usageOf(setup.account, 'req_1', NOW_MS, 200, COST_MICROS);
    const failed = usageOf(setup.account, 'req_1', NOW_MS, 503, 0);
    await expect(setup.books.charge(too_much, HELD_MICROS + 1, charged, failed)).rejects.toBeInstanceOf(
      RangeError,
    );
    // The rows of the other request: there is one already, and it can be written neither with the charge nor without.
    const reason = await rejection(setup.books.charge(no_row, COST_MICROS, charged, failed));
    expect(setup.isDuplicate(reason)).toBe(true);
    expect([await setup.kinds(), await setup.statuses()]).toEqual([[], [503]]);
    await setup.expectSettled(0);
  });

  test('a release whose usage row cannot be written frees the hold without it', async () => {
    await using setup = await openLedger(database);
    const failed_with_cost = { ...usageOf(setup.account, 'req_1', NOW_MS, 502, 0), cost_micros: COST_MICROS };
    await setup.books.release(await setup.hold('req_1'), failed_with_cost);
    expect([await setup.kinds(), await setup.statuses()]).toEqual([[], []]);
    await setup.expectSettled(0);
  });

  test('closing writes what was asked for and what still waited', async () => {
    await using setup = await openLedger(database);
    const [first, second] = await Promise.all([setup.hold('req_1'), setup.hold('req_2')]);
    const unlock = await setup.lock();
    await setup.release(first, 'req_1');
    await unlock();
    const charged = setup.charge(second, 'req_2');
    await setup.books.close();
    await charged;
    expect(await setup.kinds()).toEqual(['hold', 'charge']);
    await setup.expectSettled(1);
  });

  test('what could not be written before the process ended is released by the next start', async () => {
    await using setup = await openLedger(database);
    const hold = await setup.hold('req_1');
    const unlock = await setup.lock();
    await expect(setup.charge(hold, 'req_1')).rejects.toEqual(setup.unavailable);
    await setup.books.close();
    await unlock();
    const next = await setup.crash();
    expect([await next.recover(), await next.recover()]).toEqual([1, 0]);
    await setup.expectSettled(0);
  });

  test('a hold names its process, and the next start releases all that are open, of whichever process', async () => {
    await using setup = await openLedger(database);
    await setup.charge(await setup.hold('req_1'), 'req_1');
    await setup.hold('req_2');
    await setup.hold('req_3');
    const named = async () => (await setup.entries()).map(({ kind, process_id }) => ({ kind, process_id }));
    const ended = [
      { kind: 'top_up', process_id: null },
      { kind: 'hold', process_id: PROCESS_ID },
      { kind: 'charge', process_id: null },
    ] as const;
    const open = { kind: 'hold', process_id: PROCESS_ID } as const;
    expect(await named()).toEqual([...ended, open, open]);
    const next = await setup.crash();
    // As a version that named no process left it.
    await setup.forgetProcess('req_3');
    expect(await next.recover()).toBe(2);
    expect(await named()).toEqual([...ended]);
    await setup.expectSettled(1);
  });

  test('the balance tells what is held, and the movements what was paid, refunded and charged, newest first', async () => {
    await using setup = await openLedger(database);
    const { organization_id, project_id } = setup.account;
    await setup.charge(await setup.hold('req_1'), 'req_1');
    await setup.release(await setup.hold('req_2'), 'req_2');
    await setup.hold('req_3');
    await setup.addPayment(setup.account, 'pay_2', 'refund', 7);
    await setup.ledger.refund(setup.movement(7, 'pay_2', NOW_MS));
    expect((await setup.organizations())[0]).toMatchObject({
      credit_micros: CREDIT_MICROS - COST_MICROS - 7,
      held_micros: HELD_MICROS,
      paid_micros: CREDIT_MICROS - 7,
    });
    const movements = [
      { kind: 'refund', amount_micros: -7, at_ms: NOW_MS, project_id: null, payment_id: 'pay_2' },
      { kind: 'charge', amount_micros: -COST_MICROS, at_ms: NOW_MS, project_id, payment_id: null },
      { kind: 'top_up', amount_micros: CREDIT_MICROS, at_ms: 0, project_id: null, payment_id: 'pay_1' },
    ] as const;
    const newest = async (id: string, limit: number) =>
      (await setup.movements.movementLines({ organization_id: id, charges_by: 'request', limit })).items;
    expect(await newest(organization_id, 9)).toMatchObject(movements);
    expect(await newest(organization_id, 2)).toMatchObject(movements.slice(0, 2));
    expect(await newest('org_other', 9)).toEqual([]);
  });
});

test('requests around a full database: those told so are charged, the others are not, and nothing is lost', async () => {
  using setup = new LedgerSetup();
  const client = setup.db.$client;
  let charged = 0;
  let failed = 0;
  for (let round = 0; round < 8; round += 1) {
    const { page_count } = client.query<{ page_count: number }, []>('PRAGMA page_count').get() ?? {
      page_count: 0,
    };
    client.run(`PRAGMA max_page_count = ${page_count + round}`);
    for (let wave = 0; wave < 10; wave += 1) {
      await Promise.all(
        Array.from({ length: 8 }, async (_, number) => {
          const request_id = `req_${round}_${wave}_${number}_${'x'.repeat(100)}`;
          try {
            const hold = await setup.hold(request_id);
            if (number % 4 === 0) {
              await setup.release(hold, request_id);
              return;
            }
            await setup.charge(hold, request_id);
            charged += 1;
          } catch (error) {
            expect(error).toMatchObject({ code: 'SQLITE_FULL' });
            failed += 1;
          }
        }),
      );
    }
    client.run('PRAGMA max_page_count = 1000000');
    await setup.books.whenSettled();
    expect(setup.db.select().from(organizations).get()).toMatchObject({
      credit_micros: CREDIT_MICROS - charged * COST_MICROS,
      held_micros: 0,
    });
    expect(runAudit(setup.db, { ended_before_ms: NOW_MS + 1 })).toMatchObject({ ok: true, open_holds: 0 });
  }
  expect(Math.min(charged, failed)).toBeGreaterThan(20);
});

test('a release waits for a lock of another process however many writes do', async () => {
  using setup = new LedgerSetup();
  const commits = new GroupCommit(setup.db, { waiting_max: 1 });
  const books = new SqliteBooks(commits, setup.clock, PROCESS_ID, setup.events);
  const hold = await setup.hold('req_1');
  const unlock = setup.lock();
  const waiting = commits.run(() => null);
  await turns(2);
  const released = books.release(hold, usageOf(setup.account, 'req_1', NOW_MS, 502, 0));
  unlock();
  await Promise.all([waiting, released]);
  expect([setup.problems, setup.kinds(), setup.statuses()]).toEqual([[], [], [502]]);
});

describe('the books on a writer that', () => {
  const account = { organization_id: 'org_1', project_id: 'proj_1', api_key_id: 'key_1' };
  const hold = { ...account, entry_id: 1, request_id: 'req_1', amount_micros: HELD_MICROS, month: '2026-05' };
  const usage = (status: number) => usageOf(account, 'req_1', NOW_MS, status, 0);

  class WriterBooks extends DurableBooks {
    readonly shares_commits = true;
  }

  /** Books with one open hold, on a writer that fails in ways that a database does not on demand. */
  async function booksOn(changed: Partial<LedgerWriter>) {
    const done = () => Promise.resolve();
    const writer: LedgerWriter = {
      hold: () => Promise.resolve({ held: true, hold }),
      charge: done,
      release: done,
      isCharged: () => false,
      isStorageFailure: () => false,
      recover: () => Promise.resolve(0),
      flush: () => {},
      close: done,
      ...changed,
    };
    const problems: string[] = [];
    const settled: number[] = [];
    const events = {
      onProblem: (step: string) => problems.push(step),
      onSettled: (holds: number) => settled.push(holds),
    };
    const books = new WriterBooks(writer, { now_ms: () => NOW_MS }, events);
    await books.hold({ ...account, request_id: 'req_1', amount_micros: HELD_MICROS, at_ms: NOW_MS });
    return { books, problems, settled };
  }

  const broken = () => Promise.reject(new Error('broken'));

  test('reports an error for a charge that is written: it is charged, and not released', async () => {
    let releases = 0;
    const release = () => {
      releases += 1;
      return Promise.resolve();
    };
    const { books, problems } = await booksOn({ charge: broken, isCharged: () => true, release });
    await books.charge(hold, COST_MICROS, usage(200), usage(503));
    expect([books.open.holds, problems, releases]).toEqual([0, ['charge'], 0]);
  });

  test('refuses a release although the storage works: it waits, also where there is no usage row to leave out', async () => {
    let tries = 0;
    // An end of the failures, so that a wrong try again fails this test and does not hang it.
    const release = () => (++tries > 9 ? Promise.resolve() : broken());
    const { books, problems } = await booksOn({ release });
    await books.release(hold, null);
    expect([books.unwritten, tries, problems]).toEqual([1, 1, ['release']]);
  });

  test('is slow is closed after its last charge', async () => {
    const gate = new Gate();
    const order: string[] = [];
    const { books } = await booksOn({
      charge: async () => {
        await gate.pass();
        order.push('charge');
      },
      close: () => {
        order.push('close');
        return Promise.resolve();
      },
    });
    const charged = books.charge(hold, COST_MICROS, usage(200), usage(503));
    const closed = books.close();
    await turns(2);
    expect(order).toEqual([]);
    gate.open();
    await Promise.all([charged, closed]);
    expect(order).toEqual(['charge', 'close']);
  });

  test('is down for long is asked again every 5 s, and each outage tells its own number of releases', async () => {
    let tries = 0;
    let is_down = true;
    const release = () => {
      tries += 1;
      return is_down ? broken() : Promise.resolve();
    };
    const { books, settled } = await booksOn({ release, isStorageFailure: () => true });
    const pass = async (duration_ms: number) => {
      jest.advanceTimersByTime(duration_ms);
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    };
    jest.useFakeTimers();
    try {
      await books.release(hold, null);
      for (let count = 1; count <= 10; count += 1) await pass(60_000);
      expect(tries).toBe(11);
      await pass(5_000);
      expect(tries).toBe(12);
      is_down = false;
      await pass(5_000);
      expect(settled).toEqual([1]);
      is_down = true;
      await books.release(hold, null);
      is_down = false;
      await pass(50);
      expect(settled).toEqual([1, 1]);
    } finally {
      jest.useRealTimers();
    }
  });
});
