import { type AuditReport, auditedWholeAt_ms, continueAudit } from '../../db/sqlite/audit.ts';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { threadFailure } from '../problems/causes.ts';
import { pruneUsage } from '../usage/prune.ts';

declare const self: Worker;

/** Everything is read again after this time; in between, an audit goes on from where the last clean one came to. */
const WHOLE_AUDIT_EVERY_MS = 7 * 24 * 3_600_000;

/** What the thread is to do. */
export interface HistoryTask {
  /** The database's file. */
  readonly path: string;
  readonly now_ms: number;
  /** Requests before this time are rolled up into daily totals after a clean audit; null for none. */
  readonly prune_before_ms: number | null;
}

export interface HistoryReport {
  readonly audit: AuditReport;
  /** How many requests were rolled up. */
  readonly requests_rolled_up: number;
}

let is_stopped = false;

/** Audits the database, and rolls up old usage, beside the event loop. Stops between two batches when told so. */
self.onmessage = async ({ data }: MessageEvent<HistoryTask | 'stop'>) => {
  if (data === 'stop') {
    is_stopped = true;
    return;
  }
  self.postMessage(await run(data).catch(threadFailure));
};

async function run({ path, now_ms, prune_before_ms }: HistoryTask): Promise<HistoryReport> {
  const db = openDatabase(path);
  try {
    const read_whole_ms = auditedWholeAt_ms(db) ?? Number.NEGATIVE_INFINITY;
    const audit = continueAudit(db, { now_ms, whole: now_ms - read_whole_ms >= WHOLE_AUDIT_EVERY_MS });
    const is_pruning = audit.ok && prune_before_ms !== null;
    const { requests } = is_pruning
      ? await pruneUsage(db, { before_ms: prune_before_ms, now_ms, isStopped: () => is_stopped })
      : { requests: 0 };
    return { audit, requests_rolled_up: requests };
  } finally {
    db.$client.close();
  }
}
