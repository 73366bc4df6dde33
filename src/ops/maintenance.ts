import type { AuditReport } from '../../db/audit.ts';
import type { Db } from '../../db/connection.ts';
import type { GroupCommit } from '../../db/group-commit.ts';
import type { KeyDirectory } from '../accounts/key-directory.ts';
import { recalculateTiers } from '../accounts/tier-changes.ts';
import type { Clock } from '../clock.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { Log } from './log.ts';

const HOUR_MS = 3_600_000;
/** Last-used times are normally written with a request's hold; this is for requests that never got so far. */
const LAST_USED_FLUSH_MS = 10_000;
const UNANSWERED_LOG_MS = 10_000;

interface MaintenanceParts {
  readonly db: Db;
  readonly commits: GroupCommit;
  readonly keys: KeyDirectory;
  readonly limiter: RateLimiter;
  readonly refusals: RefusalBudgets;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What a running service does besides answering: tiers that time lifts (at start and hourly), an hourly audit whose
 * violations are logged as errors, last-used times, windows of organizations that went quiet. Returns its stop.
 */
export function startMaintenance(parts: MaintenanceParts): () => void {
  recalculateTiers(parts.db, parts.clock.now_ms());
  const timers = [
    setInterval(() => hourly(parts), HOUR_MS),
    setInterval(() => flushLastUsed(parts), LAST_USED_FLUSH_MS),
    setInterval(() => logUnanswered(parts), UNANSWERED_LOG_MS),
  ];
  for (const timer of timers) timer.unref();
  return () => {
    for (const timer of timers) clearInterval(timer);
    logUnanswered(parts);
  };
}

/** One line for all of them: a line each would let a client fill the disk. */
function logUnanswered({ refusals, log }: MaintenanceParts): void {
  const requests = refusals.takeUnanswered();
  if (requests > 0)
    log.warn('requests were answered 429 unseen: their budget of refusals is spent', { requests });
}

async function hourly({ db, limiter, refusals, clock, log }: MaintenanceParts): Promise<void> {
  limiter.forgetIdle(clock.monotonic_ms());
  refusals.forgetIdle(clock.monotonic_ms());
  try {
    recalculateTiers(db, clock.now_ms());
    const report = await auditApart(db.$client.filename);
    for (const check of report.checks.filter((one) => one.violations.length > 0)) {
      log.error('the audit found a violation: run "tds audit"', {
        check: check.name,
        violations: check.violations.length,
      });
    }
  } catch {
    log.error('the hourly tier and audit run failed; it is tried again in an hour');
  }
}

async function flushLastUsed({ commits, keys, log }: MaintenanceParts): Promise<void> {
  try {
    await keys.flushLastUsed(commits);
  } catch {
    log.warn('last-used times of keys could not be written');
  }
}

/** Audits the database file in a thread of its own. Rejects when the thread fails. */
export function auditApart(path: string): Promise<AuditReport> {
  const { promise, resolve, reject } = Promise.withResolvers<AuditReport>();
  const worker = new Worker(new URL('audit-worker.ts', import.meta.url));
  worker.onmessage = (event: MessageEvent<AuditReport>) => resolve(event.data);
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(path);
  return promise.finally(() => worker.terminate());
}
