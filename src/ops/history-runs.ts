import { DAY_MS } from '../clock.ts';

/** Everything is read again after this time; in between, an audit goes on from where the last clean one came to. */
export const WHOLE_AUDIT_EVERY_MS = 7 * DAY_MS;

/** What one run over the history is to do. */
export interface HistoryTask {
  readonly now_ms: number;
  /** Requests before this time are rolled up into daily totals after a clean audit; null for none. */
  readonly prune_before_ms: number | null;
  /** Acts of UTC days that ended before this time are rolled up in the audit trail; none without it. */
  readonly acts_before_ms?: number;
  /** Reads everything from the first entry on, however recently that was done. */
  readonly whole?: boolean;
}

export interface HistoryReport {
  readonly audit: {
    readonly ok: boolean;
    readonly checks: readonly { readonly name: string; readonly violations: readonly unknown[] }[];
  };
  /** How many requests were rolled up. */
  readonly requests_rolled_up: number;
  /** How many entries of the audit trail others stand for now. */
  readonly acts_rolled_up: number;
}

/** Audits what is kept, and rolls old usage and old acts up, beside the event loop; one run at a time. */
export interface HistoryRuns {
  /** Null when the last run still goes on. Rejects when the run fails. */
  run(task: HistoryTask): Promise<HistoryReport | null>;
  /** Asks the run to stop after the transaction that it is in. */
  stop(): void;
}
