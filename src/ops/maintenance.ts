import type { Db } from '../../db/sqlite/connection.ts';
import type { KeyDirectory } from '../accounts/key-directory.ts';
import { recalculateTiers } from '../accounts/tier-changes.ts';
import type { Clock } from '../clock.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import { ThreadFailed, type ThreadFailure } from '../problems/causes.ts';
import type { ProblemLog } from '../problems/problem-log.ts';
import type { Store } from '../store.ts';
import { latestPrune_ms } from '../usage/prune.ts';
import type { HistoryReport, HistoryTask } from './history-worker.ts';
import type { Log } from './log.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Last-used times are normally written with a request's hold; this is for requests that never got so far. */
const LAST_USED_FLUSH_MS = 10_000;
const COUNTED_LOG_MS = 10_000;

export interface MaintenanceParts {
  readonly db: Db;
  readonly store: Store;
  readonly keys: KeyDirectory;
  readonly limiter: RateLimiter;
  readonly refusals: RefusalBudgets;
  readonly clock: Clock;
  readonly log: Log;
  readonly problems: ProblemLog;
  /** After how many days a request's usage is rolled up into daily totals; null for never. */
  readonly usage_retention_days: number | null;
}

/**
 * What a running service does besides answering: tiers that time lifts (at start and hourly), an hourly audit whose
 * violations are logged as errors, daily totals of old usage, last-used times, windows of organizations that went quiet.
 * Resolves with its stop once the start's tiers are written.
 */
export async function startMaintenance(parts: MaintenanceParts): Promise<() => void> {
  await recalculateTiers(parts.store, parts.clock.now_ms());
  const history = new HistoryThread(parts.db.$client.filename);
  const timers = [
    setInterval(() => hourly(parts, history), HOUR_MS),
    setInterval(() => flushLastUsed(parts), LAST_USED_FLUSH_MS),
    setInterval(() => logCounted(parts), COUNTED_LOG_MS),
  ];
  for (const timer of timers) timer.unref();
  return () => {
    for (const timer of timers) clearInterval(timer);
    history.stop();
    logCounted(parts);
  };
}

/** One line for all of a kind: a line each would let a client fill the disk. */
function logCounted({ refusals, log, problems }: MaintenanceParts): void {
  problems.sumUp();
  const requests = refusals.takeUnanswered();
  if (requests > 0)
    log.warn('requests were answered 429 unseen: their budget of refusals is spent', { requests });
}

/** The hourly run. Never rejects: what it fails with is reported, and it is tried again in an hour. */
export async function hourly(parts: MaintenanceParts, history: HistoryThread): Promise<void> {
  const { store, limiter, refusals, clock, log, problems, usage_retention_days } = parts;
  limiter.forgetIdle(clock.monotonic_ms());
  refusals.forgetIdle(clock.monotonic_ms());
  const now_ms = clock.now_ms();
  const prune_before_ms =
    usage_retention_days === null
      ? null
      : Math.min(now_ms - usage_retention_days * DAY_MS, latestPrune_ms(now_ms));
  try {
    await recalculateTiers(store, now_ms);
    const report = await history.run({ now_ms, prune_before_ms });
    if (report === null) return;
    for (const check of report.audit.checks.filter((one) => one.violations.length > 0)) {
      log.error('the audit found a violation: run "tds audit"', {
        check: check.name,
        violations: check.violations.length,
      });
    }
    const { requests_rolled_up: requests } = report;
    if (requests > 0) log.info('rolled old usage up into daily totals', { requests });
  } catch (error) {
    problems.report({ request_id: null, step: 'hourly_run', code: null, error });
  }
}

async function flushLastUsed({ keys, problems }: MaintenanceParts): Promise<void> {
  try {
    await keys.flushLastUsed();
  } catch (error) {
    problems.report({ request_id: null, step: 'last_used', code: null, error });
  }
}

/** Audits the database file, and rolls old usage up, in a thread of its own; one at a time. */
export class HistoryThread {
  readonly #path: string;
  #worker: Worker | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Null when the last run still goes on. Rejects when the thread fails. */
  run(task: Omit<HistoryTask, 'path'>): Promise<HistoryReport | null> {
    if (this.#worker !== undefined) return Promise.resolve(null);
    const { promise, resolve, reject } = Promise.withResolvers<HistoryReport>();
    const worker = new Worker(new URL('history-worker.ts', import.meta.url));
    this.#worker = worker;
    // The end of the process does not wait for it.
    worker.unref();
    worker.onmessage = ({ data }: MessageEvent<HistoryReport | ThreadFailure>) => {
      if ('failed' in data) reject(new ThreadFailed(data.failed.message, data.failed.causes));
      else resolve(data);
    };
    worker.onerror = (event) => reject(new ThreadFailed(event.message, []));
    worker.postMessage({ ...task, path: this.#path } satisfies HistoryTask);
    return promise.finally(() => {
      worker.terminate();
      this.#worker = undefined;
    });
  }

  /** Asks the run to stop after the transaction that it is in. */
  stop(): void {
    this.#worker?.postMessage('stop');
  }
}
