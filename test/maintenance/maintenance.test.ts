import { expect, jest, setDefaultTimeout, test } from 'bun:test';
import { HistoryThread } from '../../db/sqlite/history-thread.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, listKeys } from '../../src/accounts/keys.ts';
import { hourly, startMaintenance } from '../../src/maintenance/maintenance.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/time/clock.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { addAccount, IS_ON_POSTGRES, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

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
    const parts = {
      ...services,
      problems,
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
      const audited_at_ms = since_now_ms === null ? null : service.clock.now_ms() + since_now_ms;
      const stop = await startMaintenance(parts, audited_at_ms);
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
