import { runHistory } from '../../src/maintenance/run-history.ts';
import { threadFailure } from '../../src/problems/causes.ts';
import type { HistoryReport, HistoryTask } from '../../src/store/history-runs.ts';
import { auditedWholeAt_ms, continueAudit } from './audit.ts';
import { openDatabase } from './connection.ts';
import { SqliteStore } from './sqlite-store.ts';

declare const self: Worker;

/** The task of the thread. */
export interface FileTask extends HistoryTask {
  /** The database's file. */
  readonly path: string;
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

async function run({ path, ...task }: FileTask): Promise<HistoryReport> {
  const db = openDatabase(path);
  try {
    return await runHistory(
      {
        store: new SqliteStore(db),
        auditedWholeAt_ms: () => auditedWholeAt_ms(db),
        continueAudit: (given) => continueAudit(db, given),
      },
      task,
      () => is_stopped,
    );
  } finally {
    db.$client.close();
  }
}
