import { expect, test } from 'bun:test';
import { runAudit } from '../../db/sqlite/audit.ts';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import {
  ledgerDays,
  ledgerEntries,
  organizations,
  projectMonths,
  usageDays,
  usageRecords,
} from '../../db/sqlite/schema.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { creditHistory } from '../../src/payments/history.ts';
import { dailyUsage, rolledUpUsage } from '../../src/usage/daily.ts';
import { exportUsage } from '../../src/usage/export.ts';
import { latestPrune_ms, pruneUsage } from '../../src/usage/prune.ts';
import { PruneRefused } from '../../src/usage/prune-refused.ts';
import { addPayment, COST_MICROS, LedgerSetup, NOW_MS, PROCESS_ID, pruningOf } from '../ledger/support.ts';

/** Long after `NOW_MS`, which everything in these tests happens at. */
const LATER_MS = Date.UTC(2026, 6, 10);
const BEFORE = { before_ms: NOW_MS + 1, now_ms: LATER_MS };

/** Two charged requests, a failed one, a refund, and a charged one. */
async function history(): Promise<LedgerSetup> {
  const setup = new LedgerSetup();
  for (const id of ['req_1', 'req_2']) await setup.charge(await setup.hold(id), id);
  await setup.release(await setup.hold('req_failed'), 'req_failed');
  const { organization_id } = setup.account;
  await setup.commits.run(() => {
    addPayment(setup.db, setup.account, 'pay_2', 'refund', 100);
    setup.ledger.refund({ organization_id, amount_micros: 100, payment_id: 'pay_2', at_ms: NOW_MS });
  });
  await setup.charge(await setup.hold('req_3'), 'req_3');
  return setup;
}

/** Everything that must not move. */
function balances({ db }: LedgerSetup) {
  return [db.select().from(organizations).all(), db.select().from(projectMonths).all()];
}

/** Everything that there is. */
function everything(setup: LedgerSetup) {
  const { db } = setup;
  const tables = [ledgerEntries, ledgerDays, usageRecords, usageDays];
  return [balances(setup), tables.map((table) => db.select().from(table).all())];
}

test('old requests become totals of their day; payments and balances stay', async () => {
  using setup = await history();
  const { organization_id, project_id, api_key_id } = setup.account;
  const before = balances(setup);
  expect(await pruneUsage(pruningOf(setup.db), BEFORE)).toEqual({ requests: 4 });
  expect(balances(setup)).toEqual(before);
  expect(runAudit(setup.db, { ended_before_ms: LATER_MS }).ok).toBe(true);
  expect(setup.kinds()).toEqual(['refund']);
  expect(setup.statuses()).toEqual([]);
  expect(setup.db.select().from(ledgerDays).all()).toEqual([
    {
      project_id,
      day: '2026-05-05',
      organization_id,
      last_entry_id: 9,
      charges: 3,
      charged_micros: 3 * COST_MICROS,
    },
  ]);
  const group = {
    organization_id,
    project_id,
    api_key_id,
    day: '2026-05-05',
    model: 'decision-1',
    mode: 'fast',
  };
  const answered = { requests: 3, questions: 3, input_tokens: 6 * COST_MICROS, cost_micros: 3 * COST_MICROS };
  const failed = { requests: 1, questions: 0, input_tokens: 0, cost_micros: 0 };
  expect<unknown>(setup.db.select().from(usageDays).all()).toEqual([
    { ...group, endpoint: '/v1/decisions', status: 200, ...answered },
    { ...group, endpoint: '/v1/decisions', status: 502, ...failed },
  ]);
});

test('what is rolled up in pieces, with requests in between, adds up to the same', async () => {
  using whole = await history();
  await whole.charge(await whole.hold('req_4'), 'req_4');
  await pruneUsage(pruningOf(whole.db), BEFORE);
  using pieces = await history();
  await pruneUsage(pruningOf(pieces.db), { ...BEFORE, batch_requests: 1 });
  await pieces.charge(await pieces.hold('req_4'), 'req_4');
  await pruneUsage(pruningOf(pieces.db), { ...BEFORE, batch_requests: 1 });
  expect(everything(pieces)).toEqual(everything(whole));
});

test('only what was admitted and has ended before the time is rolled up', async () => {
  using setup = await history();
  const { organization_id, project_id } = setup.account;
  const hold = (request_id: string, at_ms: number) => {
    const asked = { organization_id, project_id, request_id, amount_micros: 10, at_ms };
    const result = setup.ledger.hold(asked, PROCESS_ID);
    if (!result.held) throw new Error(result.refusal);
    return result.hold;
  };
  setup.ledger.charge(hold('req_late', NOW_MS), 0, NOW_MS + 1);
  const insert = { ...setup.account, model: 'm', mode: 'fast', endpoint: '/', input_tokens: 0 } as const;
  const answered = { ...insert, status: 200, questions: 1, cost_micros: 0, latency_ms: 1 };
  setup.usage.record({ ...answered, request_id: 'req_late', time_ms: NOW_MS });
  setup.ledger.charge(hold('req_after', NOW_MS + 1), 0, NOW_MS + 1);
  setup.usage.record({ ...answered, request_id: 'req_after', time_ms: NOW_MS + 1 });
  expect(await pruneUsage(pruningOf(setup.db), BEFORE)).toEqual({ requests: 4 });
  expect(setup.kinds()).toEqual(['refund', 'hold', 'charge', 'hold', 'charge']);
  expect(await pruneUsage(pruningOf(setup.db), { ...BEFORE, before_ms: NOW_MS + 2 })).toEqual({
    requests: 2,
  });
  expect(runAudit(setup.db).ok).toBe(true);
});

test('releases, which earlier versions wrote to the ledger, are rolled up too', async () => {
  using setup = await history();
  const hold = await setup.hold('req_old');
  setup.db.$client.run(`INSERT INTO ledger_entries (organization_id, project_id, kind,
    credit_delta_micros, held_delta_micros, hold_entry_id, month, created_at_ms, api_key_id)
    SELECT organization_id, project_id, 'release', 0, -held_delta_micros, id, month, created_at_ms, api_key_id
    FROM ledger_entries WHERE id = ${hold.entry_id}`);
  setup.db.$client.run('UPDATE organizations SET held_micros = 0, open_holds = 0');
  setup.db.$client.run('UPDATE project_months SET held_micros = 0');
  const before = balances(setup);
  expect(await pruneUsage(pruningOf(setup.db), BEFORE)).toEqual({ requests: 5 });
  expect(setup.kinds()).toEqual(['refund']);
  expect(balances(setup)).toEqual(before);
  expect(runAudit(setup.db).ok).toBe(true);
});

test('a request that is still held keeps what came after it', async () => {
  using setup = await history();
  const running = await setup.hold('req_running');
  await setup.charge(await setup.hold('req_4'), 'req_4');
  expect(await pruneUsage(pruningOf(setup.db), BEFORE)).toEqual({ requests: 4 });
  expect(setup.kinds()).toEqual(['refund', 'hold', 'hold', 'charge']);
  await setup.charge(running, 'req_running');
  expect(await pruneUsage(pruningOf(setup.db), BEFORE)).toEqual({ requests: 2 });
  expect(runAudit(setup.db)).toMatchObject({ ok: true, open_holds: 0 });
});

test('usage of this UTC month, and of the rate windows, cannot be rolled up', async () => {
  using setup = await history();
  const month_ms = Date.UTC(2026, 6);
  expect(latestPrune_ms(LATER_MS)).toBe(month_ms);
  expect(latestPrune_ms(month_ms + 60_000)).toBe(month_ms);
  expect(latestPrune_ms(month_ms + 59_999)).toBe(month_ms - 1);
  const before = everything(setup);
  await expect(
    pruneUsage(pruningOf(setup.db), { before_ms: month_ms + 1, now_ms: LATER_MS }),
  ).rejects.toThrow(RangeError);
  expect(everything(setup)).toEqual(before);
});

/** Errors in the books, as statements. An earlier audit has checked the rows of the last ones. */
const WRONG: readonly (readonly [what: string, sql: string, is_checked_before: boolean])[] = [
  ['a balance', 'UPDATE organizations SET credit_micros = credit_micros + 1', false],
  ['a cost', "UPDATE usage_records SET cost_micros = 3 WHERE request_id = 'req_3'", false],
  ['a cost that was checked', "UPDATE usage_records SET cost_micros = 3 WHERE request_id = 'req_3'", true],
  ['a usage row that is gone', "DELETE FROM usage_records WHERE request_id = 'req_3'", true],
  ['a month', "UPDATE ledger_entries SET month = '2026-04' WHERE kind <> 'top_up'", true],
  ['an amount that is freed', "UPDATE ledger_entries SET held_delta_micros = -9 WHERE kind = 'charge'", true],
  [
    'a total that was there before',
    `INSERT INTO ledger_days (project_id, day, organization_id, last_entry_id, charges, charged_micros)
      VALUES ('proj_acme', '2026-05-05', 'org_acme', 1, 1, 1);
    UPDATE organizations SET credit_micros = credit_micros - 1`,
    false,
  ],
];

test.each(WRONG)('nothing is rolled up of books that are wrong: %s', async (_, sql, is_checked_before) => {
  using setup = await history();
  const nothing = { before_ms: 0, now_ms: LATER_MS };
  if (is_checked_before) await pruneUsage(pruningOf(setup.db), nothing);
  for (const statement of sql.split(';')) setup.db.$client.run(statement);
  const before = everything(setup);
  await expect(pruneUsage(pruningOf(setup.db), BEFORE)).rejects.toBeInstanceOf(PruneRefused);
  expect(everything(setup)).toEqual(before);
});

test('a stop between two batches loses nothing, and the next run goes on', async () => {
  using setup = await history();
  let asked = 0;
  const isStopped = () => ++asked > 2;
  expect(await pruneUsage(pruningOf(setup.db), { ...BEFORE, batch_requests: 1, isStopped })).toEqual({
    requests: 2,
  });
  expect(runAudit(setup.db).ok).toBe(true);
  expect(await pruneUsage(pruningOf(setup.db), BEFORE)).toEqual({ requests: 2 });
});

test('the daily totals are the same before and after, and the export says what it lacks', async () => {
  using setup = await history();
  const filter = { organization_id: setup.account.organization_id };
  const daily = (await Array.fromAsync(dailyUsage(setup.store.usage, filter))).join('');
  expect(daily.split('\r\n')).toEqual([
    'day_utc,organization,project,api_key,model,mode,endpoint,status,requests,questions,input_tokens,cost_usd',
    "2026-05-05,acme,proj_acme,acme's key,decision-1,fast,/v1/decisions,200,3,3,24,0.000012",
    "2026-05-05,acme,proj_acme,acme's key,decision-1,fast,/v1/decisions,502,1,0,0,0.000000",
    '',
  ]);
  expect(await rolledUpUsage(setup.store.usage, filter)).toBeUndefined();
  await pruneUsage(pruningOf(setup.db), { ...BEFORE, batch_requests: 1, isStopped: stopAfter(2) });
  expect((await Array.fromAsync(dailyUsage(setup.store.usage, filter))).join('')).toBe(daily);
  await pruneUsage(pruningOf(setup.db), BEFORE);
  expect((await Array.fromAsync(dailyUsage(setup.store.usage, filter))).join('')).toBe(daily);
  expect(await rolledUpUsage(setup.store.usage, filter)).toEqual({ requests: 4, last_day: '2026-05-05' });
  expect(await rolledUpUsage(setup.store.usage, { ...filter, from_ms: NOW_MS + 86_400_000 })).toBeUndefined();
  expect(
    (await Array.fromAsync(dailyUsage(setup.store.usage, { ...filter, to_ms: NOW_MS }))).join(''),
  ).not.toContain('2026-05-05');
  expect(
    (await Array.fromAsync(exportUsage(setup.store.usage, filter))).join('').trimEnd().split('\r\n'),
  ).toHaveLength(1);
});

function stopAfter(batches: number): () => boolean {
  let asked = 0;
  return () => ++asked > batches;
}

test('the credit history shows the charges of a day as one, and the balance after each line', async () => {
  using setup = await history();
  await pruneUsage(pruningOf(setup.db), BEFORE);
  await setup.charge(await setup.hold('req_4'), 'req_4');
  const context = { store: setup.store, reader: new SqliteMovementReader(setup.db) };
  const given = { organization_id: setup.account.organization_id, limit: 10 };
  const lines = (await creditHistory(context, OPERATOR, given)).map((entry) =>
    entry.kind === 'tier_change' ? entry.kind : [entry.kind, entry.amount_micros, entry.balance_micros],
  );
  expect(lines).toEqual([
    ['charge', -4, 999_884],
    ['daily_charges', -12, 999_888],
    ['refund', -100, 999_900],
    ['top_up', 1_000_000, 1_000_000],
  ]);
  expect(await creditHistory(context, OPERATOR, { ...given, limit: 2 })).toHaveLength(2);
});
