import { expect, jest, setDefaultTimeout, spyOn, test } from 'bun:test';
import { HistoryThread } from '../../db/sqlite/history-thread.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, listKeys } from '../../src/accounts/keys.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { LimitRefusals } from '../../src/alerts/limit-refusals.ts';
import { AlertRuns } from '../../src/alerts/runs.ts';
import { hourly, startMaintenance } from '../../src/maintenance/maintenance.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import type { HistoryTask } from '../../src/store/history-runs.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/time/clock.ts';
import { dayOf } from '../../src/time/days.ts';
import { latestPrune_ms } from '../../src/usage/prune.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { RecordedLog } from '../support/problems.ts';
import {
  addAccount,
  IS_ON_POSTGRES,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
} from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** Adds an organization in Tier 1, which time alone raises to Tier 2 after seven days. */
async function addRising({ accounts }: TestService) {
  const { id: organization_id } = await createOrganization(accounts, OPERATOR, { name: 'Rising' });
  await creditByHand(accounts, OPERATOR, { organization_id, amount_micros: 50_000_000 });
  const tier = async () => (await accounts.store.accounts.findOrganization(organization_id))?.tier;
  return { organization_id, tier };
}

test.skipIf(IS_ON_POSTGRES)(
  'the hourly run rolls acts up that are older than the operator set, and counts expired keys as revoked',
  async () => {
    const service = await startTestService({ clock: MovableClock.stopped(), cold: true });
    const { organization_id, project_id } = await addAccount(service);
    const { problems, log, ...services } = service.service.services;
    if (!(problems instanceof ProblemLog)) throw new Error('no log of problems');
    const runAfter = (audit_log_retention_days: number) =>
      hourly({
        ...services,
        problems,
        log: { ...log, problem: () => undefined },
        history: new HistoryThread(service.db.$client.filename),
        beginsHourlyRun: () => Promise.resolve(true),
        usage_retention_days: null,
        audit_log_retention_days,
      });
    const creations = async () => {
      const filter = { organization_id, before_id: null, action: 'key.create', limit: 10 };
      const listed = await service.accounts.store.audit_log.listEntries(filter);
      return listed.map(({ detail }) => detail.times ?? 1);
    };
    const expires_at_ms = service.clock.now_ms() + DAY_MS;
    await createKey(service.accounts, OPERATOR, { project_id, name: 'one more' });
    await createKey(service.accounts, OPERATOR, { project_id, name: 'for a day', expires_at_ms });
    service.clock.advance(10 * DAY_MS);
    await runAfter(11);
    expect(await creations()).toEqual([1, 1, 1]);
    expect(await listKeys(service.accounts, OPERATOR, { organization_id, revoked: true })).toMatchObject([
      { name: 'for a day', revoked_at_ms: expires_at_ms },
    ]);
    await runAfter(9);
    expect(await creations()).toEqual([3]);
    await service.close();
  },
);

test.each([
  ['never', null, 5 * MINUTE_MS],
  ['two hours ago', -2 * HOUR_MS, 5 * MINUTE_MS],
  ['50 minutes ago', -50 * MINUTE_MS, 10 * MINUTE_MS],
  ['by a clock that was set back', DAY_MS, HOUR_MS],
] as const)(
  'an audit is due an hour after the last clean one, whatever starts lie between: %s',
  async (_, since_now_ms, due_in_ms) => {
    const service = await startTestService({ clock: MovableClock.stopped(), cold: true });
    const { problems, log, ...services } = service.service.services;
    if (!(problems instanceof ProblemLog)) throw new Error('no log of problems');
    let runs = 0;
    const audited: [violations: number, at_ms: number][] = [];
    const now_ms = service.clock.now_ms();
    const parts = {
      ...services,
      problems,
      metrics: { audited: (...noted: [number, number]) => void audited.push(noted) },
      log: { ...log, problem: () => undefined },
      history: new HistoryThread(''),
      alerts: null,
      beginsHourlyRun: () => {
        runs += 1;
        return Promise.resolve(false);
      },
      usage_retention_days: null,
      audit_log_retention_days: 365,
    };
    jest.useFakeTimers();
    try {
      const audited_at_ms = since_now_ms === null ? null : now_ms + since_now_ms;
      const stop = await startMaintenance(parts, audited_at_ms);
      expect(audited).toEqual(since_now_ms === null ? [] : [[0, now_ms + Math.min(since_now_ms, 0)]]);
      jest.advanceTimersByTime(due_in_ms - 1);
      await Promise.resolve();
      expect(runs).toBe(0);
      jest.advanceTimersByTime(1);
      stop();
    } finally {
      jest.useRealTimers();
    }
    await eventually(() => runs > 0);
    await service.close();
  },
);

test('each work has its interval, from the start, which raises tiers, to the stop, which tells what is left', async () => {
  const recorded = new RecordedLog();
  const service = await startTestService({ clock: MovableClock.stopped(), log: recorded.log, cold: true });
  await using opened = new AsyncDisposableStack();
  opened.defer(() => service.close());
  const { problems, log, ...services } = service.service.services;
  if (!(problems instanceof ProblemLog)) throw new Error('no log of problems');
  const { keys, answer_counts, refusals, store } = services;
  const alerts = new AlertRuns({
    ...{ store, problems, limit_refusals: new LimitRefusals(), mail: null },
    now_ms: () => Promise.resolve(service.clock.now_ms()),
  });
  const history = new HistoryThread('');
  using reports = spyOn(problems, 'report').mockReset();
  const works = [
    spyOn(keys, 'flushLastUsed').mockReset().mockRejectedValueOnce(new Error('away')),
    spyOn(alerts, 'run').mockReset(),
    spyOn(answer_counts, 'flush').mockReset(),
    spyOn(history, 'stop').mockReset(),
  ];
  for (const spy of works) opened.use(spy);
  let hourly_runs = 0;
  const { tier } = await addRising(service);
  service.clock.advance(7 * DAY_MS);
  expect(await tier()).toBe(1);
  jest.useFakeTimers();
  const counts: unknown[] = [];
  try {
    const parts = {
      ...services,
      ...{ problems, history, alerts, usage_retention_days: null, audit_log_retention_days: 365 },
      log: { ...log, problem: () => undefined },
      beginsHourlyRun: () => {
        hourly_runs += 1;
        return Promise.resolve(false);
      },
    };
    const stop = await startMaintenance(parts, null);
    expect(await tier()).toBe(2);
    for (const duration_ms of [10_000, MINUTE_MS - 10_000, 2 * HOUR_MS - MINUTE_MS]) {
      refusals.noteUnanswered();
      jest.advanceTimersByTime(duration_ms);
      counts.push(works.map(({ mock }) => mock.calls.length));
    }
    refusals.noteUnanswered();
    stop();
    jest.advanceTimersByTime(HOUR_MS);
    counts.push(works.map(({ mock }) => mock.calls.length));
  } finally {
    jest.useRealTimers();
  }
  expect(counts).toEqual([
    [1, 0, 0, 0],
    [6, 1, 1, 0],
    [720, 120, 120, 0],
    [720, 120, 120, 1],
  ]);
  const unseen = (await recorded.lines()).filter(({ msg }) => msg.startsWith('requests were answered 429'));
  expect(unseen).toMatchObject(Array.from({ length: 4 }, () => ({ requests: 1 })));
  // After five minutes, one hour and two.
  await eventually(() => hourly_runs === 3);
  expect(reports.mock.calls).toMatchObject([[{ step: 'last_used', error: { message: 'away' } }]]);
});

test('the hourly run raises tiers, forgets what is old, and asks for a roll-up within what may be rolled up', async () => {
  const service = await startTestService({ clock: MovableClock.stopped(), cold: true });
  await using opened = new AsyncDisposableStack();
  opened.defer(() => service.close());
  const { problems, log, ...services } = service.service.services;
  if (!(problems instanceof ProblemLog)) throw new Error('no log of problems');
  const { store, limiter, refusals } = services;
  const tasks: HistoryTask[] = [];
  using reports = spyOn(problems, 'report').mockReset();
  const forgotten = [spyOn(limiter, 'forgetIdle'), spyOn(refusals, 'forgetIdle')];
  for (const spy of forgotten) opened.use(spy);
  const run = async (
    usage_retention_days: number | null,
    beginsHourlyRun: () => Promise<boolean> = () => Promise.resolve(true),
  ) =>
    await hourly({
      ...services,
      ...{ problems, beginsHourlyRun, usage_retention_days, audit_log_retention_days: 365 },
      log: { ...log, problem: () => undefined },
      history: {
        run: (task) => {
          tasks.push(task);
          return Promise.resolve(null);
        },
        stop: () => undefined,
      },
    });
  const { tier } = await addRising(service);
  await store.transaction(({ catalog }) =>
    catalog.addAnswerCounts('decision-1', dayOf(service.clock.now_ms()), [
      { question: 0, class: 0, answers: 1 },
    ]),
  );
  const stored = async () => {
    const counts = ['alerts', 'answer_counts'].map(async (table) => {
      const [row] = await service.execute(`SELECT count(*) AS count FROM ${table}`);
      return Number(row?.count);
    });
    return [await tier(), ...(await Promise.all(counts))];
  };
  // The alerts are those of the payment and of the tier that came of it.
  expect(await stored()).toEqual([1, 2, 1]);
  service.clock.advance(7 * DAY_MS);
  await run(null, () => Promise.resolve(false));
  await run(null, () => Promise.reject(new Error('away')));
  expect(await stored()).toEqual([1, 2, 1]);
  expect(tasks).toEqual([]);
  expect(reports.mock.calls).toMatchObject([[{ step: 'hourly_run', error: { message: 'away' } }]]);
  await run(null);
  expect(await stored()).toEqual([2, 3, 0]);
  service.clock.advance(90 * DAY_MS + 1);
  await run(30);
  expect(await stored()).toEqual([2, 0, 0]);
  await run(1);
  const now_ms = service.clock.now_ms();
  expect(tasks.map(({ prune_before_ms }) => prune_before_ms)).toEqual([
    null,
    now_ms - 30 * DAY_MS,
    latestPrune_ms(now_ms),
  ]);
  for (const forgetting of forgotten) expect(forgetting).toHaveBeenCalledTimes(5);
  expect(reports).toHaveBeenCalledTimes(1);
});
