import { expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { apiKeys, projects } from '../../db/sqlite/schema.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import type { UsageFilter } from '../../src/store/usage-records.ts';
import { type ExportBounds, exportUsage } from '../../src/usage/export.ts';
import { usedLimits } from '../../src/usage/used-limits.ts';
import { type Account, addAccount, TemporaryDatabase, usageOf } from '../ledger/support.ts';

const START_MS = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

class Setup extends TemporaryDatabase {
  readonly account: Account = addAccount(this.db, 'acme');
  readonly store = new SqliteStore(this.db);
  readonly usage = new UsageWriter(this.db);

  /** Records that many answered requests, of which several share each millisecond. */
  record(rows: number, account = this.account): void {
    transact(this.db, () => {
      for (let row = 0; row < rows; row += 1) {
        const request_id = `req_${account.api_key_id}_${String(row).padStart(6, '0')}`;
        this.usage.record(usageOf(account, request_id, START_MS + Math.floor(row / 7), 200, row));
      }
    });
  }

  async lines(filter: Partial<UsageFilter> = {}, bounds: ExportBounds = {}): Promise<string[]> {
    const { organization_id } = this.account;
    let text = '';
    for await (const piece of exportUsage(this.store.usage, { organization_id, ...filter }, bounds)) {
      expect(piece).toEndWith('\r\n');
      text += piece;
    }
    return text.split('\r\n').slice(0, -1);
  }
}

const requestOf = (line: string) => line.slice(line.lastIndexOf(',') + 1);

test('the export has the columns of the usage export, and a failed request costs nothing', async () => {
  using setup = new Setup();
  setup.usage.record(usageOf(setup.account, 'req_1', START_MS, 200, 1_234_567));
  setup.usage.record(usageOf(setup.account, 'req_2', START_MS + 1, 502, 0));
  expect(await setup.lines()).toEqual([
    'time_utc,model,mode,endpoint,project,api_key,status,questions,input_tokens,cost_usd,latency_ms,request_id',
    "2026-02-03T04:05:06.008Z,decision-1,fast,/v1/decisions,proj_acme,acme's key,502,0,0,0.000000,1.5,req_2",
    "2026-02-03T04:05:06.007Z,decision-1,fast,/v1/decisions,proj_acme,acme's key,200,1,2469134,1.234567,1.5,req_1",
  ]);
});

test('every row is there once, newest first, however many pages they take', async () => {
  using setup = new Setup();
  setup.record(1_700);
  const [, ...lines] = await setup.lines();
  const expected = Array.from(
    { length: 1_700 },
    (_, row) => `req_key_acme_${String(1_699 - row).padStart(6, '0')}`,
  );
  expect(lines.map(requestOf)).toEqual(expected);
});

test('an export stops at its most rows, keeping the newest, and says from where on older ones are left', async () => {
  using setup = new Setup();
  setup.record(1_200);
  const cuts: number[] = [];
  const onCut = (last_ms: number) => cuts.push(last_ms);
  const [, ...lines] = await setup.lines({}, { rows_max: 1_001, onCut });
  expect([lines.length, requestOf(lines.at(-1) ?? '')]).toEqual([1_001, 'req_key_acme_000199']);
  const [last_ms = 0] = cuts;
  const [, ...rest] = await setup.lines({ to_ms: last_ms + 1 }, { rows_max: 500, onCut });
  expect(new Set([...lines, ...rest]).size).toBe(1_200);
  await setup.lines({}, { rows_max: 1_200, onCut });
  expect(cuts).toHaveLength(1);
});

test('requests that end while the export runs neither repeat nor move its rows', async () => {
  using setup = new Setup();
  setup.record(1_100);
  const { organization_id } = setup.account;
  const seen: string[] = [];
  for await (const piece of exportUsage(setup.store.usage, { organization_id })) {
    seen.push(...piece.split('\r\n').slice(0, -1).map(requestOf));
    setup.usage.record(usageOf(setup.account, `req_late_${seen.length}`, START_MS + 10_000, 200, 1));
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((id) => id.startsWith('req_key_acme_'))).toHaveLength(1_100);
});

test('only the organization, time, project and key that were asked for', async () => {
  using setup = new Setup();
  const { db, account } = setup;
  setup.record(70);
  setup.record(5, addAccount(db, 'other'));
  const second = { ...account, project_id: 'proj_second', api_key_id: 'key_second' };
  db.insert(projects)
    .values({
      id: second.project_id,
      organization_id: account.organization_id,
      name: 'Second',
      created_at_ms: 0,
    })
    .run();
  db.insert(apiKeys)
    .values({
      id: second.api_key_id,
      project_id: second.project_id,
      name: 'Second key',
      secret_sha256: 'second',
      display_prefix: 'sk_svc_abcde',
      created_at_ms: 0,
    })
    .run();
  setup.record(3, second);
  const rows = async (filter: Partial<UsageFilter>) => (await setup.lines(filter)).length - 1;
  expect(await rows({})).toBe(73);
  expect(await rows({ project_id: account.project_id })).toBe(70);
  expect(await rows({ api_key_id: second.api_key_id })).toBe(3);
  expect(await rows({ from_ms: START_MS + 1 })).toBe(63);
  expect(await rows({ to_ms: START_MS + 1 })).toBe(10);
  expect(await rows({ from_ms: START_MS + 1, to_ms: START_MS + 3 })).toBe(14);
  expect(await rows({ organization_id: 'org_other' })).toBe(5);
});

test('names that a spreadsheet would run are exported as text', async () => {
  using setup = new Setup();
  setup.db
    .update(projects)
    .set({ name: '=HYPERLINK("x")' })
    .where(eq(projects.id, setup.account.project_id))
    .run();
  setup.record(1);
  const [, line] = await setup.lines();
  expect(line).toContain(`,"'=HYPERLINK(""x"")",`);
});

test('the windows are rebuilt from the requests of the last span, of which failed ones took no tokens', async () => {
  using setup = new Setup();
  const { organization_id } = setup.account;
  setup.usage.record(usageOf(setup.account, 'req_old', START_MS, 200, 5));
  setup.usage.record({ ...usageOf(setup.account, 'req_failed', START_MS + 3, 502, 0), input_tokens: 9 });
  setup.usage.record(usageOf(setup.account, 'req_1', START_MS + 1, 200, 5));
  expect(await usedLimits(setup.store.usage, START_MS + 100, 100)).toEqual([
    { organization_id, age_ms: 99, input_tokens: 10 },
    { organization_id, age_ms: 97, input_tokens: 0 },
  ]);
});

test('after the wall clock was set back the newest request counts as made now, and those before it by that', async () => {
  using setup = new Setup();
  const { organization_id } = setup.account;
  for (const [id, time_ms] of [
    ['long_ago', 5_000],
    ['before', 9_950],
    ['last', 10_000],
    ['since', 1_990],
  ] as const) {
    setup.usage.record(usageOf(setup.account, `req_${id}`, START_MS + time_ms, 200, 5));
  }
  expect(await usedLimits(setup.store.usage, START_MS + 2_000, 100)).toEqual([
    { organization_id, age_ms: 50, input_tokens: 10 },
    { organization_id, age_ms: 10, input_tokens: 10 },
    { organization_id, age_ms: 0, input_tokens: 10 },
  ]);
});
