import { afterEach, beforeEach, expect, test } from 'bun:test';
import { HistoryThread } from '../../db/sqlite/history-thread.ts';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import { Audits } from '../../src/maintenance/audits.ts';
import type { Problem } from '../../src/problems/problems.ts';
import { outcome } from '../accounts/everyone.ts';
import { LedgerSetup, NOW_MS } from '../ledger/support.ts';
import { MovableClock } from '../support/clock.ts';
import { RecordedLog } from '../support/problems.ts';

let setup: LedgerSetup;
let recorded: RecordedLog;
let problems: Problem[];
let counted: number[];
let audits: Audits;
beforeEach(() => {
  setup = new LedgerSetup();
  recorded = new RecordedLog();
  problems = [];
  counted = [];
  audits = new Audits(new HistoryThread(setup.path), {
    clock: MovableClock.stopped(NOW_MS),
    log: recorded.log,
    metrics: { audited: (violations) => counted.push(violations) },
    problems: { report: (problem) => problems.push(problem) },
  });
});
afterEach(() => setup[Symbol.dispose]());

const damage = (micros: number) =>
  setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros + ?1', [micros]);

test('there is none before the first', () => {
  expect(audits.status(OPERATOR)).toEqual({ last: null, is_running: false });
});

test('the last run of the background work is remembered', async () => {
  await audits.run({ now_ms: NOW_MS, prune_before_ms: null });
  expect(audits.status(OPERATOR).last).toMatchObject({
    started_at_ms: NOW_MS,
    ended_at_ms: NOW_MS,
    outcome: 'ok',
    whole: false,
    requests_rolled_up: 0,
  });
  expect(audits.status(OPERATOR).last?.checks).toContainEqual({
    name: 'balance_equals_ledger',
    violations: 0,
  });
});

test('an audit now reads everything, says what it found, counts it and logs it', async () => {
  await audits.run({ now_ms: NOW_MS, prune_before_ms: null });
  damage(5);
  const result = await audits.auditNow(OPERATOR);
  expect(result).toMatchObject({ outcome: 'violations', whole: true });
  expect(result?.checks).toContainEqual({ name: 'balance_equals_ledger', violations: 1 });
  expect(audits.status(OPERATOR).last).toEqual(result);
  expect(counted.at(-1)).toBeGreaterThan(0);
  expect((await recorded.lines()).map(({ msg }) => msg)).toContain(
    'the audit found a violation: run "tds audit"',
  );
  damage(-5);
  expect(await audits.auditNow(OPERATOR)).toMatchObject({ outcome: 'ok' });
  expect(counted.at(-1)).toBe(0);
});

test('an audit now begins at the first entry, where the last clean one was passed long before', async () => {
  await setup.charge(await setup.hold('req_1'), 'req_1');
  const thread = new HistoryThread(setup.path);
  await thread.run({ now_ms: NOW_MS, prune_before_ms: null });
  const again = await thread.run({ now_ms: NOW_MS, prune_before_ms: null });
  expect(again?.audit.after_entry_id).toBeGreaterThan(0);
  const whole = await thread.run({ now_ms: NOW_MS, prune_before_ms: null, whole: true });
  expect(whole?.audit.after_entry_id).toBe(0);
});

test('two do not run at once, and the second changes nothing of what the first tells', async () => {
  const first = audits.auditNow(OPERATOR);
  expect(audits.status(OPERATOR).is_running).toBe(true);
  expect(await audits.auditNow(OPERATOR)).toBeNull();
  expect(await first).toMatchObject({ outcome: 'ok' });
  expect(audits.status(OPERATOR).is_running).toBe(false);
});

test('an audit that cannot be done is reported, and says so', async () => {
  setup.db.$client.run('DROP TABLE usage_records');
  expect(await audits.auditNow(OPERATOR)).toMatchObject({ outcome: 'failed', checks: [] });
  expect(problems).toMatchObject([{ request_id: null, step: 'audit' }]);
  await expect(audits.run({ now_ms: NOW_MS, prune_before_ms: null })).rejects.toThrow();
  expect(audits.status(OPERATOR)).toMatchObject({ last: { outcome: 'failed' }, is_running: false });
});

test('is for the operator only', async () => {
  const user: Actor = { kind: 'user', user_id: 'user_1' };
  expect(() => audits.status(user)).toThrow();
  expect(await outcome(() => audits.auditNow(user))).toBe('permission_denied');
});
