import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, rmSync } from 'node:fs';
import { auditedWholeAt_ms, continueAudit } from '../../db/sqlite/audit.ts';
import { DatabaseFileGone } from '../../db/sqlite/file-watch.ts';
import { HistoryThread } from '../../db/sqlite/history-thread.ts';
import { auditLogEntries, usageDays, usageRecords } from '../../db/sqlite/schema.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { runHistory } from '../../src/maintenance/run-history.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { PruneRefused } from '../../src/usage/prune-refused.ts';
import { LedgerSetup, NOW_MS } from '../ledger/support.ts';

const NEXT_MONTH_MS = Date.UTC(2026, 5, 2);

let setup: LedgerSetup;
let thread: HistoryThread;
beforeEach(() => {
  setup = new LedgerSetup();
  thread = new HistoryThread(setup.path);
});
afterEach(() => setup[Symbol.dispose]());

async function audit(now_ms: number) {
  const report = await thread.run({ now_ms, prune_before_ms: null });
  if (report === null) throw new Error('another run goes on');
  return report.audit;
}

/** The history as the thread has it. */
function historyOf(beforeAudit: () => void = () => {}) {
  return {
    store: new SqliteStore(setup.db),
    auditedWholeAt_ms: () => null,
    continueAudit: (given: { readonly now_ms: number }) => {
      beforeAudit();
      return continueAudit(setup.db, given);
    },
  };
}

test('the audit in its own thread sees what is in the file', async () => {
  expect((await audit(NOW_MS)).ok).toBe(true);
  setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros + 5');
  const report = await audit(NOW_MS);
  expect(report.ok).toBe(false);
  expect(report.checks.filter((check) => check.violations.length > 0).map((check) => check.name)).toEqual([
    'balance_equals_ledger',
  ]);
});

test('an audit goes on from the last clean one, and reads everything again after a week', async () => {
  expect((await audit(NOW_MS)).after_entry_id).toBe(0);
  await setup.charge(await setup.hold('req_1'), 'req_1');
  expect((await audit(NOW_MS + DAY_MS)).after_entry_id).toBe(1);
  expect((await audit(NOW_MS + 6 * DAY_MS)).after_entry_id).toBe(3);
  expect(auditedWholeAt_ms(setup.db)).toBe(NOW_MS);
  expect((await audit(NOW_MS + 7 * DAY_MS)).after_entry_id).toBe(0);
  expect(auditedWholeAt_ms(setup.db)).toBe(NOW_MS + 7 * DAY_MS);
});

test('a clock that was ahead for one run does not put off the audits of everything', async () => {
  await setup.charge(await setup.hold('req_1'), 'req_1');
  expect((await audit(NOW_MS + 365 * DAY_MS)).ok).toBe(true);
  expect((await audit(NOW_MS)).after_entry_id).toBe(0);
  expect(auditedWholeAt_ms(setup.db)).toBe(NOW_MS);
  expect((await audit(NOW_MS + DAY_MS)).after_entry_id).toBe(3);
});

test('a file that was removed is not audited, and no empty one is made in its place', async () => {
  rmSync(setup.path);
  await expect(thread.run({ now_ms: NOW_MS, prune_before_ms: null })).rejects.toBeInstanceOf(
    DatabaseFileGone,
  );
  expect(existsSync(setup.path)).toBe(false);
});

test('there is never a second run beside one', async () => {
  const task = { now_ms: NOW_MS, prune_before_ms: null };
  const first = thread.run(task);
  expect(await thread.run(task)).toBeNull();
  expect((await first)?.audit.ok).toBe(true);
  expect((await thread.run(task))?.audit.ok).toBe(true);
});

test('a run that fails says so, and the next one is not held up by it', async () => {
  const task = { now_ms: NOW_MS, prune_before_ms: null };
  setup.db.$client.run('ALTER TABLE usage_records RENAME TO usage_away');
  await expect(thread.run(task)).rejects.toThrow('usage_records');
  setup.db.$client.run('ALTER TABLE usage_away RENAME TO usage_records');
  expect((await thread.run(task))?.audit.ok).toBe(true);
});

test('old usage is rolled up after a clean audit, and kept after any other', async () => {
  await setup.charge(await setup.hold('req_1'), 'req_1');
  const task = { now_ms: NEXT_MONTH_MS, prune_before_ms: NEXT_MONTH_MS - 2 * DAY_MS };
  setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
  expect(await thread.run(task)).toMatchObject({ audit: { ok: false }, requests_rolled_up: 0 });
  expect(setup.db.select().from(usageRecords).all()).toHaveLength(1);
  setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros - 1');
  expect(await thread.run(task)).toMatchObject({ audit: { ok: true }, requests_rolled_up: 1 });
  expect(setup.db.select().from(usageRecords).all()).toEqual([]);
  expect(setup.db.select().from(usageDays).all()).toMatchObject([{ requests: 1, status: 200 }]);
});

test('old usage is kept where a violation comes between the audit and the roll-up', async () => {
  await setup.charge(await setup.hold('req_1'), 'req_1');
  let audits = 0;
  const history = historyOf(() => {
    audits += 1;
    if (audits === 2) setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
  });
  const task = { now_ms: NEXT_MONTH_MS, prune_before_ms: NEXT_MONTH_MS - 2 * DAY_MS };
  await expect(runHistory(history, task, () => false)).rejects.toBeInstanceOf(PruneRefused);
  expect(setup.db.select().from(usageRecords).all()).toHaveLength(1);
});

test('old acts are rolled up whatever the audit finds, and not once a stop has begun', async () => {
  const { organization_id } = setup.account;
  const act = { action: 'key.create', object_kind: 'key', detail: '{}', created_at_ms: NOW_MS };
  for (let acts = 0; acts < 3; acts += 1)
    setup.db
      .insert(auditLogEntries)
      .values({ ...act, organization_id })
      .run();
  setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
  const task = { now_ms: NEXT_MONTH_MS, prune_before_ms: null };
  expect(await thread.run({ ...task, acts_before_ms: NOW_MS })).toMatchObject({ acts_rolled_up: 0 });
  const old = { ...task, acts_before_ms: NOW_MS + DAY_MS };
  expect(await runHistory(historyOf(), old, () => true)).toMatchObject({ acts_rolled_up: 0 });
  expect(await thread.run(old)).toMatchObject({
    audit: { ok: false },
    acts_rolled_up: 2,
  });
  expect(setup.db.select().from(auditLogEntries).all()).toMatchObject([{ detail: '{"times":3}' }]);
});
