import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/bun-sql';
import { auditedWholeAt_ms, continueAudit } from '../../db/postgres/audit.ts';
import type { PgDb } from '../../db/postgres/connection.ts';
import { PostgresHistoryRuns } from '../../db/postgres/history-runs.ts';
import { HISTORY_LOCK } from '../../db/postgres/locks.ts';
import { PostgresStore } from '../../db/postgres/postgres-store.ts';
import { auditLogEntries, scheduledRuns, usageDays, usageRecords } from '../../db/postgres/schema.ts';
import { DAY_MS, MINUTE_MS, systemClock } from '../../src/time/clock.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { addProject, COST_MICROS, HELD_MICROS, LedgerSetup, NOW_MS, usageOf } from '../ledger/support.ts';
import { type CopiedPostgres, copiedToPostgres } from '../support/copied-postgres.ts';
import { isPostgresMissing } from '../support/postgres.ts';

const NEXT_MONTH_MS = Date.UTC(2026, 5, 2);
const PRUNING = { now_ms: NEXT_MONTH_MS, before_ms: NEXT_MONTH_MS - 2 * DAY_MS };
/** As many as `pruneUsage` rolls up in one transaction. */
const BATCH_REQUESTS = 500;

/** A database with so many requests that were charged, each of a project of its own. */
async function charged(requests: number): Promise<CopiedPostgres> {
  using setup = new LedgerSetup();
  const charge = async (request_id: string) => {
    const account = { ...setup.account, project_id: `proj_${request_id}` };
    addProject(setup.db, account, account.project_id);
    const held = await setup.books.hold({
      ...account,
      request_id,
      amount_micros: HELD_MICROS,
      at_ms: NOW_MS,
    });
    if (!held.held) throw new Error(held.refusal);
    const answered = usageOf(account, request_id, NOW_MS, 200, COST_MICROS);
    await setup.books.charge(held.hold, COST_MICROS, answered, usageOf(account, request_id, NOW_MS, 503, 0));
  };
  await Promise.all(Array.from({ length: requests }, (_, number) => charge(`req_${number}`)));
  return await copiedToPostgres(setup.db);
}

describe.skipIf(isPostgresMissing())('runs over the history in PostgreSQL', () => {
  let copy: CopiedPostgres;
  let db: PgDb;
  let node: PostgresHistoryRuns;
  let other: PostgresHistoryRuns;
  beforeEach(async () => {
    using setup = new LedgerSetup();
    await setup.charge(await setup.hold('req_1'), 'req_1');
    copy = await copiedToPostgres(setup.db);
    ({ db } = copy);
    [node, other] = [
      new PostgresHistoryRuns(db, systemClock),
      new PostgresHistoryRuns(await copy.anotherPool(), systemClock),
    ];
  });
  afterEach(() => copy[Symbol.asyncDispose]());

  const task = { now_ms: NOW_MS, prune_before_ms: null };
  const anHourLater = () => db.update(scheduledRuns).set({ started_at: sql`started_at - interval '1 hour'` });
  async function audit(now_ms: number) {
    const report = await node.run({ ...task, now_ms });
    await anHourLater();
    return report?.audit;
  }

  test('an audit goes on from the last clean one, and reads everything again after a week', async () => {
    expect(await audit(NOW_MS)).toMatchObject({ ok: true, after_entry_id: 0 });
    expect(await audit(NOW_MS + 6 * DAY_MS)).toMatchObject({ ok: true, after_entry_id: 3 });
    expect(await auditedWholeAt_ms(db)).toBe(NOW_MS);
    expect(await audit(NOW_MS + 7 * DAY_MS)).toMatchObject({ ok: true, after_entry_id: 0 });
    expect(await auditedWholeAt_ms(db)).toBe(NOW_MS + 7 * DAY_MS);
  });

  test('of all nodes one has a run, and once an hour', async () => {
    const runs = await Promise.all([node.run(task), other.run(task)]);
    expect(runs.filter((report) => report !== null)).toHaveLength(1);
    expect([await node.run(task), await other.run(task)]).toEqual([null, null]);
    await anHourLater();
    expect((await other.run(task))?.audit.ok).toBe(true);
    expect(await node.run(task)).toBeNull();
  });

  test('a node that died in a run, or a clock that was set back, holds up no other for longer', async () => {
    await node.run(task);
    await db.update(scheduledRuns).set({ started_at: sql`clock_timestamp() + interval '1 day'` });
    expect((await other.run(task))?.audit.ok).toBe(true);
  });

  test('an audit of everything is for an operator to ask for at any time, but never beside a run', async () => {
    await node.run(task);
    expect((await other.run({ ...task, whole: true }))?.audit).toMatchObject({ ok: true });
    const held = await db.$client.reserve();
    await held`SELECT pg_advisory_lock(${HISTORY_LOCK}::bigint)`;
    expect(await other.run({ ...task, whole: true })).toBeNull();
    await held`SELECT pg_advisory_unlock(${HISTORY_LOCK}::bigint)`;
    held.release();
    expect((await other.run({ ...task, whole: true }))?.audit.ok).toBe(true);
  });

  test('there is never a second run of a node beside one', async () => {
    const first = node.run({ ...task, whole: true });
    expect(await node.run({ ...task, whole: true })).toBeNull();
    expect((await first)?.audit.ok).toBe(true);
    expect((await node.run({ ...task, whole: true }))?.audit.ok).toBe(true);
  });

  test('a run that fails says so, and the next one is not held up by it', async () => {
    await db.execute(sql`ALTER TABLE usage_records RENAME TO usage_away`);
    await expect(node.run(task)).rejects.toThrow();
    await db.execute(sql`ALTER TABLE usage_away RENAME TO usage_records`);
    await anHourLater();
    expect((await node.run(task))?.audit.ok).toBe(true);
  });

  test('old usage is rolled up after a clean audit, and kept after any other', async () => {
    const pruning = { now_ms: NEXT_MONTH_MS, prune_before_ms: NEXT_MONTH_MS - 2 * DAY_MS };
    await db.execute(sql`UPDATE organizations SET credit_micros = credit_micros + 1`);
    expect(await node.run(pruning)).toMatchObject({ audit: { ok: false }, requests_rolled_up: 0 });
    expect(await db.select().from(usageRecords)).toHaveLength(1);
    await db.execute(sql`UPDATE organizations SET credit_micros = credit_micros - 1`);
    await anHourLater();
    expect(await node.run(pruning)).toMatchObject({ audit: { ok: true }, requests_rolled_up: 1 });
    expect(await db.select().from(usageRecords)).toEqual([]);
    expect(await db.select().from(usageDays)).toMatchObject([{ requests: 1, status: 200 }]);
    expect((await other.run({ ...task, whole: true }))?.audit).toMatchObject({ ok: true });
  });

  test('a batch of the roll-up is as many statements for hundreds of requests as for one', async () => {
    const counted = async (requests: number) => {
      await using history = await charged(requests);
      let statements = 0;
      const onStatement = () => {
        statements += 1;
      };
      const watched = drizzle(history.db.$client, { logger: { logQuery: onStatement } });
      const parts = {
        store: new PostgresStore(watched),
        continueAudit: async (now_ms: number) => (await continueAudit(history.db, { now_ms })).ok,
      };
      expect(await pruneUsage(parts, PRUNING)).toEqual({ requests });
      expect(await history.db.select().from(usageDays)).toHaveLength(requests);
      return statements;
    };
    const of_one = await counted(1);
    expect(of_one).toBeGreaterThan(0);
    expect(await counted(BATCH_REQUESTS - 1)).toBe(of_one);
  });

  test('old acts are rolled up whatever the audit finds', async () => {
    const act = { action: 'key.create', object_kind: 'key', detail: '{}', created_at_ms: NOW_MS };
    await db.insert(auditLogEntries).values([act, act, act]);
    await db.execute(sql`UPDATE organizations SET credit_micros = credit_micros + 1`);
    const acts_before_ms = NOW_MS + DAY_MS;
    expect(await node.run({ ...task, acts_before_ms })).toMatchObject({
      audit: { ok: false },
      acts_rolled_up: 2,
    });
    expect(await db.select().from(auditLogEntries)).toMatchObject([{ detail: '{"times":3}' }]);
  });

  test('a roll-up that does not come to its end within the hour goes on in the next, and each run reports its audit', async () => {
    await using history = await charged(BATCH_REQUESTS + 1);
    let minutes = 0;
    // Half an hour between one look at the clock and the next: one batch is done in time, and the next is not.
    const slow = {
      monotonic_ms: () => {
        minutes += 30;
        return minutes * MINUTE_MS;
      },
    };
    const runs = new PostgresHistoryRuns(history.db, slow);
    const pruning = { now_ms: PRUNING.now_ms, prune_before_ms: PRUNING.before_ms };
    const reports = [];
    for (let run = 0; run < 2; run += 1) {
      reports.push(await runs.run(pruning));
      await history.db.update(scheduledRuns).set({ started_at: sql`started_at - interval '1 hour'` });
    }
    expect(reports).toMatchObject([
      { audit: { ok: true }, requests_rolled_up: BATCH_REQUESTS },
      { audit: { ok: true }, requests_rolled_up: 1 },
    ]);
    expect(await history.db.select().from(usageRecords)).toEqual([]);
  });

  test('a node that is being stopped begins no run', async () => {
    node.stop();
    expect(await node.run(task)).toBeNull();
    expect((await other.run(task))?.audit.ok).toBe(true);
  });
});
