import { expect, test } from 'bun:test';
import { runAudit } from '../../db/sqlite/audit.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { organizations } from '../../db/sqlite/schema.ts';
import { HoldNotOpen, Ledger } from '../../src/ledger/ledger.ts';
import { Settlement } from '../../src/ledger/settlement.ts';
import { COST_MICROS, CREDIT_MICROS, HELD_MICROS, LedgerSetup, NOW_MS } from './support.ts';

/** Nothing is held, exactly that many requests were charged, and the audit is clean. */
function expectSettled(setup: LedgerSetup, charged: number): void {
  expect(setup.db.select().from(organizations).get()).toMatchObject({
    credit_micros: CREDIT_MICROS - charged * COST_MICROS,
    held_micros: 0,
  });
  expect(runAudit(setup.db, { ended_before_ms: NOW_MS + 1 })).toMatchObject({ ok: true, open_holds: 0 });
}

test('a charge and its usage row are one commit', async () => {
  using setup = new LedgerSetup();
  await setup.charge(await setup.hold('req_1'), 'req_1');
  expect([setup.kinds(), setup.statuses()]).toEqual([['hold', 'charge'], [200]]);
  expectSettled(setup, 1);
});

test('a charge that cannot be committed rejects, and its hold is released as soon as it can be', async () => {
  using setup = new LedgerSetup();
  const holds = await Promise.all(['req_1', 'req_2'].map((id) => setup.hold(id)));
  const unlock = setup.lock();
  const charges = await Promise.allSettled(
    holds.map((hold, number) => setup.charge(hold, `req_${number + 1}`)),
  );
  expect(charges).toEqual(
    holds.map(() => ({ status: 'rejected', reason: expect.objectContaining({ code: 'SQLITE_BUSY' }) })),
  );
  expect(setup.settlement.unwritten).toBe(2);
  const busy: (typeof setup.problems)[number] = ['release', expect.objectContaining({ code: 'SQLITE_BUSY' })];
  expect(setup.problems).toEqual([busy, busy]);
  expect(setup.settled).toEqual([]);
  unlock();
  await setup.settlement.whenSettled();
  expect([setup.problems.length, setup.settled]).toEqual([2, [2]]);
  expect([setup.kinds(), setup.statuses()]).toEqual([[], [503, 503]]);
  expectSettled(setup, 0);
});

test('a release that cannot be written resolves, and is written as soon as it can be', async () => {
  using setup = new LedgerSetup();
  const hold = await setup.hold('req_1');
  const unlock = setup.lock();
  await setup.release(hold, 'req_1');
  expect(setup.settlement.unwritten).toBe(1);
  expect(setup.problems).toEqual([['release', expect.objectContaining({ code: 'SQLITE_BUSY' })]]);
  unlock();
  await setup.settlement.whenSettled();
  expect([setup.problems.length, setup.settled]).toEqual([1, [1]]);
  expect([setup.kinds(), setup.statuses()]).toEqual([[], [502]]);
  expectSettled(setup, 0);
});

test('a hold ends once, whatever is asked for after or beside the first end', async () => {
  using setup = new LedgerSetup();
  const hold = await setup.hold('req_1');
  const [charged, again] = await Promise.allSettled([
    setup.charge(hold, 'req_1'),
    setup.charge(hold, 'req_1'),
    setup.release(hold, 'req_1'),
  ]);
  expect(charged).toMatchObject({ status: 'fulfilled' });
  expect(again).toMatchObject({ status: 'rejected', reason: expect.any(HoldNotOpen) });
  await setup.release(hold, 'req_1');
  expect(setup.kinds()).toEqual(['hold', 'charge']);
  expectSettled(setup, 1);
});

test('a hold that waits for its release cannot be charged', async () => {
  using setup = new LedgerSetup();
  const hold = await setup.hold('req_1');
  const unlock = setup.lock();
  await setup.release(hold, 'req_1');
  unlock();
  await expect(setup.charge(hold, 'req_1')).rejects.toBeInstanceOf(HoldNotOpen);
  await setup.settlement.whenSettled();
  expectSettled(setup, 0);
});

test('a charge that is wrong in itself releases the hold at once', async () => {
  using setup = new LedgerSetup();
  const [too_much, no_row] = await Promise.all([setup.hold('req_1'), setup.hold('req_2')]);
  const throwing = () => {
    throw new TypeError('no row');
  };
  const none = () => undefined;
  await expect(setup.settlement.charge(too_much, HELD_MICROS + 1, none)).rejects.toBeInstanceOf(RangeError);
  await expect(setup.settlement.charge(no_row, COST_MICROS, throwing)).rejects.toBeInstanceOf(TypeError);
  expect(setup.kinds()).toEqual([]);
  expectSettled(setup, 0);
});

test('a release whose usage row cannot be written frees the hold without it', async () => {
  using setup = new LedgerSetup();
  await setup.settlement.release(await setup.hold('req_1'), () => {
    throw new TypeError('no row');
  });
  expect(setup.kinds()).toEqual([]);
  expectSettled(setup, 0);
});

test('closing writes what was asked for and what still waited', async () => {
  using setup = new LedgerSetup();
  const [first, second] = await Promise.all([setup.hold('req_1'), setup.hold('req_2')]);
  const unlock = setup.lock();
  await setup.release(first, 'req_1');
  unlock();
  const charged = setup.charge(second, 'req_2');
  await setup.settlement.close();
  await charged;
  expect(setup.kinds()).toEqual(['hold', 'charge']);
  expectSettled(setup, 1);
});

test('what could not be written before the process ended is released by the next start', async () => {
  using setup = new LedgerSetup();
  const hold = await setup.hold('req_1');
  const unlock = setup.lock();
  await expect(setup.charge(hold, 'req_1')).rejects.toMatchObject({ code: 'SQLITE_BUSY' });
  await setup.settlement.close();
  unlock();
  const db = setup.crash();
  const next = new Settlement(new Ledger(db), new GroupCommit(db), setup.clock, setup.events);
  expect([next.recoverAtStart(), next.recoverAtStart()]).toEqual([1, 0]);
  expectSettled(setup, 0);
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
    await setup.settlement.whenSettled();
    expectSettled(setup, charged);
  }
  expect(Math.min(charged, failed)).toBeGreaterThan(20);
});
