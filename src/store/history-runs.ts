import type { AuditReport } from './audit-report.ts';

/** The task of one run over the history. */
export interface HistoryTask {
  readonly now_ms: number;
  /** Requests before this time are rolled up into daily totals after a clean audit; null for none. */
  readonly prune_before_ms: number | null;
  /** Acts of UTC days that ended before this time are rolled up in the audit log; none without it. */
  readonly acts_before_ms?: number;
  /** Reads everything from the first entry on, even if that was done recently. */
  readonly whole?: boolean;
}

export interface HistoryReport {
  readonly audit: AuditReport;
  /** The number of rolled-up requests. */
  readonly requests_rolled_up: number;
  /** The number of entries of the audit log that were merged into others. */
  readonly acts_rolled_up: number;
}

/**
 * Audits the stored data, and rolls up old usage and old acts, outside of the event loop; one run at a time.
 */
export interface HistoryRuns {
  /** Runs a task. Resolves with null when the last run is still in progress. Rejects when the run fails. */
  run(task: HistoryTask): Promise<HistoryReport | null>;
  /** Asks the run to stop after its current transaction. */
  stop(): void;
}
