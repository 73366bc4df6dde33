import type { KeyDirectory } from '../accounts/key-directory.ts';
import { recalculateTiers } from '../accounts/tier-changes.ts';
import type { AlertRuns } from '../alerts/runs.ts';
import { forgetAnswers } from '../idempotency/forget-answers.ts';
import type { RateWindows } from '../limits/rate-windows.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { Log } from '../log/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { ProblemLog } from '../problems/problem-log.ts';
import { inBackground } from '../problems/problems.ts';
import type { AnswerCounts } from '../served-models/answer-counts.ts';
import { firstComparedDay } from '../served-models/answer-drifts.ts';
import type { HistoryRuns } from '../store/history-runs.ts';
import type { Store } from '../store/store.ts';
import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS } from '../time/clock.ts';
import { latestPrune_ms } from '../usage/prune.ts';
import { reportAudit } from './audits.ts';

/** Last-used times are normally written with a request's hold; this interval is for requests without one. */
const LAST_USED_FLUSH_MS = 10_000;
const COUNTED_LOG_MS = 10_000;
const ANSWER_COUNTS_FLUSH_MS = MINUTE_MS;
const ALERTS_MS = MINUTE_MS;
/** How long a start is left alone before an audit that is due. */
const FIRST_RUN_MS = 5 * MINUTE_MS;
/** It is longer than a month, so that no alert of a spend limit is forgotten while it could be raised again. */
const ALERT_RETENTION_MS = 90 * DAY_MS;

export interface MaintenanceParts {
  readonly history: HistoryRuns;
  readonly store: Store;
  readonly keys: KeyDirectory;
  readonly limiter: RateWindows;
  readonly refusals: RefusalBudgets;
  readonly answer_counts: AnswerCounts;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'audited'>;
  readonly problems: ProblemLog;
  /** Null for a service without a console, which shows no alerts. */
  readonly alerts: AlertRuns | null;
  /** Returns true if this service is to do the hourly work of all services on a database now. */
  readonly beginsHourlyRun: () => Promise<boolean>;
  /** The days after which usage is rolled up into daily totals; null for never. */
  readonly usage_retention_days: number | null;
  /** The days after which acts in the audit log are rolled up, those of a UTC day into one. */
  readonly audit_log_retention_days: number;
}

/**
 * Starts the background work of a running service. At the start and hourly: tiers that time raises. Hourly: an
 * audit, whose violations are logged as errors, and daily totals of old usage and old acts. Hourly too: keys
 * that expired count as revoked, and the deletion of expired idempotent answers, old counts of answers, old alerts and
 * idle windows. Every minute: alerts, and counts of tuned models' answers. Every few seconds: last-used times of keys,
 * and counts for the log. The first hourly run comes an hour after the last clean audit, at `audited_at_ms`. So a
 * service that is restarted within each hour is audited, too. Resolves with a function that stops it, once the start's
 * tiers are written.
 */
export async function startMaintenance(
  parts: MaintenanceParts,
  audited_at_ms: number | null,
): Promise<() => void> {
  const { store, clock, metrics } = parts;
  await recalculateTiers(store, clock.now_ms());
  // A checkpoint of a clock that was ahead would hide the violations that other nodes find.
  if (audited_at_ms !== null) metrics.audited(0, Math.min(audited_at_ms, clock.now_ms()));
  const due_in_ms = (audited_at_ms ?? 0) + HOUR_MS - clock.now_ms();
  const timers = [
    setTimeout(() => hourly(parts), Math.max(FIRST_RUN_MS, Math.min(due_in_ms, HOUR_MS))),
    setInterval(() => hourly(parts), HOUR_MS),
    setInterval(() => flushLastUsed(parts), LAST_USED_FLUSH_MS),
    setInterval(() => logCounted(parts), COUNTED_LOG_MS),
    setInterval(() => parts.answer_counts.flush(), ANSWER_COUNTS_FLUSH_MS),
    setInterval(() => parts.alerts?.run(), ALERTS_MS),
  ];
  for (const timer of timers) timer.unref();
  return () => {
    for (const timer of timers) clearInterval(timer);
    parts.history.stop();
    logCounted(parts);
  };
}

/** Logs one line for all events of a kind, so that a client cannot fill the disk. */
function logCounted({ refusals, log, problems }: MaintenanceParts): void {
  problems.sumUp();
  const requests = refusals.takeUnanswered();
  if (requests > 0)
    log.warn('requests were answered 429 unseen: their budget of refusals is spent', { requests });
}

/** Does the hourly work. Never rejects: a failure is reported, and the work is retried in an hour. */
export async function hourly(parts: MaintenanceParts): Promise<void> {
  const {
    store,
    history,
    limiter,
    refusals,
    clock,
    log,
    metrics,
    problems,
    beginsHourlyRun,
    usage_retention_days,
    audit_log_retention_days,
  } = parts;
  refusals.forgetIdle(clock.monotonic_ms());
  const now_ms = clock.now_ms();
  const prune_before_ms =
    usage_retention_days === null
      ? null
      : Math.min(now_ms - usage_retention_days * DAY_MS, latestPrune_ms(now_ms));
  try {
    await limiter.forgetIdle();
    if (!(await beginsHourlyRun())) return;
    await recalculateTiers(store, now_ms);
    await store.transaction((records) => records.keys.revokeExpired(now_ms));
    await forgetAnswers(store, now_ms);
    await store.catalog.forgetAnswerCounts(firstComparedDay(now_ms));
    await store.alerts.forgetEnded(now_ms - ALERT_RETENTION_MS);
    const acts_before_ms = now_ms - audit_log_retention_days * DAY_MS;
    const report = await history.run({ now_ms, prune_before_ms, acts_before_ms });
    if (report === null) return;
    reportAudit({ clock, log, metrics }, report.audit);
    const { requests_rolled_up: requests, acts_rolled_up: acts } = report;
    if (requests > 0) log.info('rolled old usage up into daily totals', { requests });
    if (acts > 0) log.info('rolled old acts up in the audit log', { acts });
  } catch (error) {
    problems.report(inBackground('hourly_run', error));
  }
}

async function flushLastUsed({ keys, problems }: MaintenanceParts): Promise<void> {
  try {
    await keys.flushLastUsed();
  } catch (error) {
    problems.report(inBackground('last_used', error));
  }
}
