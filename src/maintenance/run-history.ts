import { rollUpAuditLog } from '../audit-log/roll-up.ts';
import type { AuditReport } from '../store/audit-report.ts';
import type { HistoryReport, HistoryTask } from '../store/history-runs.ts';
import type { Store } from '../store/store.ts';
import { DAY_MS } from '../time/clock.ts';
import { pruneUsage } from '../usage/prune.ts';

/** The interval of full audits; in between, an audit starts at the end of the last clean one. */
const WHOLE_AUDIT_EVERY_MS = 7 * DAY_MS;

/** A database's history, and its audit. */
interface History {
  readonly store: Store;
  /** Returns the time of the last clean audit of everything; null for never. */
  auditedWholeAt_ms(): Promise<number | null> | number | null;
  continueAudit(given: {
    readonly now_ms: number;
    readonly whole?: boolean;
  }): Promise<AuditReport> | AuditReport;
}

/**
 * Audits a history, rolls up old usage if the audit is clean, and then old acts. `isStopped` is called between two
 * batches; true ends the roll-up. Rejects as the database and `pruneUsage` do.
 */
export async function runHistory(
  history: History,
  { now_ms, prune_before_ms, acts_before_ms, whole = false }: HistoryTask,
  isStopped: () => boolean,
): Promise<HistoryReport> {
  const { store } = history;
  const read_whole_ms = (await history.auditedWholeAt_ms()) ?? Number.NEGATIVE_INFINITY;
  // A time ahead was noted by a clock that was wrong, so nobody knows how long ago that audit was.
  const is_due = read_whole_ms > now_ms || now_ms - read_whole_ms >= WHOLE_AUDIT_EVERY_MS;
  const audit = await history.continueAudit({ now_ms, whole: whole || is_due });
  const is_pruning = audit.ok && prune_before_ms !== null;
  const { requests } = is_pruning
    ? await pruneUsage(
        { store, continueAudit: async (at_ms) => (await history.continueAudit({ now_ms: at_ms })).ok },
        { before_ms: prune_before_ms, now_ms, isStopped },
      )
    : { requests: 0 };
  const acts_rolled_up =
    acts_before_ms === undefined ? 0 : await rollUpAuditLog(store, { before_ms: acts_before_ms, isStopped });
  return { audit, requests_rolled_up: requests, acts_rolled_up };
}
