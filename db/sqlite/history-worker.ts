import type { AuditReport } from '../../src/ops/audit-report.ts';
import { type HistoryReport, type HistoryTask, WHOLE_AUDIT_EVERY_MS } from '../../src/ops/history-runs.ts';
import { threadFailure } from '../../src/problems/causes.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { auditedWholeAt_ms, continueAudit } from './audit.ts';
import { openDatabase } from './connection.ts';
import { SqliteStore } from './sqlite-store.ts';

declare const self: Worker;

/** What the thread is to do. */
export interface FileTask extends HistoryTask {
  /** The database's file. */
  readonly path: string;
}

export interface AuditedHistory extends HistoryReport {
  readonly audit: AuditReport;
}

let is_stopped = false;

/** Audits the database, and rolls up old usage, beside the event loop. Stops between two batches when told so. */
self.onmessage = async ({ data }: MessageEvent<FileTask | 'stop'>) => {
  if (data === 'stop') {
    is_stopped = true;
    return;
  }
  self.postMessage(await run(data).catch(threadFailure));
};

async function run({ path, now_ms, prune_before_ms, whole = false }: FileTask): Promise<AuditedHistory> {
  const db = openDatabase(path);
  try {
    const read_whole_ms = auditedWholeAt_ms(db) ?? Number.NEGATIVE_INFINITY;
    const audit = continueAudit(db, {
      now_ms,
      whole: whole || now_ms - read_whole_ms >= WHOLE_AUDIT_EVERY_MS,
    });
    const is_pruning = audit.ok && prune_before_ms !== null;
    const { requests } = is_pruning
      ? await pruneUsage(
          { store: new SqliteStore(db), continueAudit: (at_ms) => continueAudit(db, { now_ms: at_ms }).ok },
          { before_ms: prune_before_ms, now_ms, isStopped: () => is_stopped },
        )
      : { requests: 0 };
    return { audit, requests_rolled_up: requests };
  } finally {
    db.$client.close();
  }
}
