import { rollUpAuditLog } from '../../src/audit-log/roll-up.ts';
import { threadFailure } from '../../src/problems/causes.ts';
import type { AuditReport } from '../../src/store/audit-report.ts';
import { type HistoryReport, type HistoryTask, WHOLE_AUDIT_EVERY_MS } from '../../src/store/history-runs.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { auditedWholeAt_ms, continueAudit } from './audit.ts';
import { openDatabase } from './connection.ts';
import { SqliteStore } from './sqlite-store.ts';

declare const self: Worker;

/** The task of the thread. */
export interface FileTask extends HistoryTask {
  /** The database's file. */
  readonly path: string;
}

export interface AuditedHistory extends HistoryReport {
  readonly audit: AuditReport;
}

let is_stopped = false;

/** Audits the database, and rolls up old usage and old acts, off the event loop. `stop` ends it between two batches. */
self.onmessage = async ({ data }: MessageEvent<FileTask | 'stop'>) => {
  if (data === 'stop') {
    is_stopped = true;
    return;
  }
  self.postMessage(await run(data).catch(threadFailure));
};

async function run(task: FileTask): Promise<AuditedHistory> {
  const { path, now_ms, prune_before_ms, acts_before_ms, whole = false } = task;
  const db = openDatabase(path);
  try {
    const read_whole_ms = auditedWholeAt_ms(db) ?? Number.NEGATIVE_INFINITY;
    const audit = continueAudit(db, {
      now_ms,
      whole: whole || now_ms - read_whole_ms >= WHOLE_AUDIT_EVERY_MS,
    });
    const store = new SqliteStore(db);
    const isStopped = () => is_stopped;
    const is_pruning = audit.ok && prune_before_ms !== null;
    const { requests } = is_pruning
      ? await pruneUsage(
          { store, continueAudit: (at_ms) => continueAudit(db, { now_ms: at_ms }).ok },
          { before_ms: prune_before_ms, now_ms, isStopped },
        )
      : { requests: 0 };
    const acts_rolled_up =
      acts_before_ms === undefined
        ? 0
        : await rollUpAuditLog(store, { before_ms: acts_before_ms, isStopped });
    return { audit, requests_rolled_up: requests, acts_rolled_up };
  } finally {
    db.$client.close();
  }
}
