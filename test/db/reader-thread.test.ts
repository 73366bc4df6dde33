import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import { ReaderThread } from '../../db/sqlite/reader-thread.ts';
import { SqliteUsageReader } from '../../db/sqlite/usage-reader.ts';
import { ThreadFailed } from '../../src/problems/causes.ts';
import { exportUsage } from '../../src/usage/export.ts';
import { FairReader, ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import { LedgerSetup, NOW_MS, usageOf } from '../ledger/support.ts';
import { longestBlock_ms } from '../support/event-loop.ts';
import { eventually } from '../support/eventually.ts';

const DAY_MS = 86_400_000;
/** Of the time that a chart takes without the thread: far above what sending the question and the answer takes. */
const BLOCK_SHARE_MAX = 1 / 2;
const MANY_ROWS = 240_000;
/** An export goes on by pieces: more of them block no longer. */
const EXPORTED_ROWS = 20_000;

let setup: LedgerSetup;
let thread: ReaderThread;
beforeEach(() => {
  setup = new LedgerSetup();
  thread = new ReaderThread(setup.path);
});
afterEach(async () => {
  await thread.close();
  setup[Symbol.dispose]();
});

const span = { from_ms: NOW_MS - DAY_MS, to_ms: NOW_MS + DAY_MS, offset_minutes: 0 };

test('the thread answers as a reader of its own does, of what is committed', async () => {
  const { organization_id } = setup.account;
  expect(await thread.firstAnswer_ms(organization_id)).toBeUndefined();
  await setup.charge(await setup.hold('req_1'), 'req_1');
  await setup.release(await setup.hold('req_2'), 'req_2');
  const usage = new SqliteUsageReader(setup.db);
  const question = { organization_id, ...span };
  const series = await thread.series(question);
  expect(series.totals).toMatchObject({ requests: 2, cost_micros: 4 });
  expect(series).toEqual(await usage.series(question));
  expect(await thread.page({ organization_id }, 1)).toEqual(await usage.page({ organization_id }, 1));
  expect(await thread.values({ organization_id })).toEqual(await usage.values({ organization_id }));
  expect(await thread.firstAnswer_ms(organization_id)).toBe(NOW_MS);
  const lines = { organization_id, charges_by: 'request', limit: 1 } as const;
  const movements = await thread.movementLines(lines);
  expect(movements).toMatchObject({ items: [{ request_id: 'req_1', amount_micros: -4 }], next: {} });
  expect(movements).toEqual(await new SqliteMovementReader(setup.db).movementLines(lines));
});

test('a read that fails says so, and the next one is answered', async () => {
  const { organization_id } = setup.account;
  setup.db.$client.run('ALTER TABLE usage_records RENAME TO usage_away');
  const failed = thread.page({ organization_id }, 1);
  const answered = thread.movementLines({ organization_id, charges_by: 'day', limit: 9 });
  await expect(failed).rejects.toThrow(ThreadFailed);
  expect((await answered).items).toHaveLength(1);
  setup.db.$client.run('ALTER TABLE usage_away RENAME TO usage_records');
  expect(await thread.page({ organization_id }, 1)).toEqual([]);
});

test('the thread answers what it was asked for before it closes, and nothing afterwards', async () => {
  const { organization_id } = setup.account;
  const asked = thread.values({ organization_id });
  await thread.close();
  expect((await asked).models).toEqual([]);
  await expect(thread.values({ organization_id })).rejects.toThrow(ThreadFailed);
  await new ReaderThread(setup.path).close();
});

test('one organization with many reads delays the read of another by one of them', async () => {
  const { organization_id } = setup.account;
  const reader = new FairReader(thread, thread, 1);
  const answered: string[] = [];
  const many = Array.from({ length: 30 }, () =>
    reader.values({ organization_id }).then(() => answered.push('many')),
  );
  const other = reader.values({ organization_id: 'org_other' }).then(() => answered.push('other'));
  await Promise.all([...many, other]);
  expect(answered.indexOf('other')).toBeLessThanOrEqual(1);
});

test('a read that takes too long is ended; others are answered, and its organization when its statement has ended', async () => {
  const { organization_id } = setup.account;
  await setup.charge(await setup.hold('req_1'), 'req_1');
  setup.db.$client.run('ALTER TABLE usage_records RENAME TO usage_away');
  // A statement of seconds, however few rows there are.
  setup.db.$client.run(
    `CREATE VIEW usage_records AS SELECT usage_away.* FROM usage_away, (
      WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 8000000)
      SELECT count(*) AS numbers FROM numbers) WHERE numbers > 0`,
  );
  const hasty = new ReaderThread(setup.path, 1_000);
  const too_long = hasty.values({ organization_id });
  const behind = hasty.movementLines({ organization_id: 'org_other', charges_by: 'day', limit: 9 });
  await expect(too_long).rejects.toThrow(ReadTookTooLong);
  expect((await behind).items).toEqual([]);
  const lines = () => hasty.movementLines({ organization_id, charges_by: 'day', limit: 9 });
  // Otherwise whoever asks again and again would have as many threads.
  await expect(lines()).rejects.toThrow(ReadTookTooLong);
  const wait_until_ms = Date.now() + 60_000;
  await eventually(async () => (await lines().catch(() => null)) !== null || Date.now() >= wait_until_ms);
  expect((await lines()).items.length).toBeGreaterThan(0);
  await hasty.close();
}, 120_000);

describe('a thread that dies', () => {
  const { Worker: RealWorker } = globalThis;
  let workers: Worker[];
  beforeEach(() => {
    workers = [];
    globalThis.Worker = class extends RealWorker {
      constructor(script: string | URL) {
        super(script);
        workers.push(this);
      }
    };
  });
  afterEach(() => {
    globalThis.Worker = RealWorker;
  });

  /** No order at all, which the thread does not survive. */
  const kill = () => workers.at(-1)?.postMessage(null);

  test('fails the reads that it was asked for; the thread after it answers all before it closes', async () => {
    const { organization_id } = setup.account;
    await thread.values({ organization_id });
    kill();
    await expect(thread.values({ organization_id })).rejects.toThrow(ThreadFailed);
    const asked = Array.from({ length: 20 }, () => thread.values({ organization_id }));
    await thread.close();
    expect(workers).toHaveLength(2);
    const answers = await Promise.race([Promise.all(asked), new Promise(setImmediate)]);
    expect(answers).toHaveLength(20);
  });

  test('while it closes ends that too', async () => {
    const { organization_id } = setup.account;
    await thread.values({ organization_id });
    kill();
    const asked = thread.values({ organization_id }).catch((error: unknown) => error);
    await thread.close();
    expect(await asked).toBeInstanceOf(ThreadFailed);
  });
});

/** The longest block of the quietest of three runs: the collection of garbage is no part of it. */
async function quietestBlock_ms(work: () => Promise<unknown>): Promise<number> {
  const blocks_ms: number[] = [];
  for (let run = 0; run < 3; run += 1) blocks_ms.push(await longestBlock_ms(work));
  return Math.min(...blocks_ms);
}

test('charts and exports of many rows do not hold the event loop up', async () => {
  const { account, db } = setup;
  const { organization_id } = account;
  db.$client.run('PRAGMA synchronous = OFF');
  setup.usage.record(usageOf(account, 'req_first', NOW_MS, 200, 1));
  db.$client.run(
    `WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${MANY_ROWS - 1})
    INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint,
      status, questions, input_tokens, cost_micros, latency_ms)
    SELECT 'req_' || number, time_ms + number, organization_id, project_id, api_key_id, model, mode, endpoint, status,
      questions, input_tokens, cost_micros, number FROM usage_records, numbers`,
  );
  const question = { organization_id, ...span };
  const series = () => thread.series(question);
  // The start of the thread, and the compiler, are no part of it.
  expect((await series()).totals).toMatchObject({ requests: MANY_ROWS, latency_ms: { p50: 119_999 } });
  const usage = new SqliteUsageReader(db);
  const block_max_ms = BLOCK_SHARE_MAX * (await quietestBlock_ms(() => usage.series(question)));
  expect(await quietestBlock_ms(series)).toBeLessThan(block_max_ms);
  const nothing = () => thread.page({ organization_id, status: 418 }, 50);
  expect(await quietestBlock_ms(nothing)).toBeLessThan(block_max_ms);
  let rows = 0;
  const exported = async () => {
    rows = -1;
    for await (const piece of exportUsage(thread, { organization_id, to_ms: NOW_MS + EXPORTED_ROWS }))
      rows += piece.split('\r\n').length - 1;
  };
  expect(await quietestBlock_ms(exported)).toBeLessThan(block_max_ms);
  expect(rows).toBe(EXPORTED_ROWS);
}, 120_000);
