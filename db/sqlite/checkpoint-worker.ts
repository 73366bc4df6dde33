import { Database } from 'bun:sqlite';
import { threadFailure } from '../../src/problems/causes.ts';

declare const self: Worker;

/** The largest rest of the log that is copied under the write lock, so that no write waits long. */
const PAGES_LEFT_MAX = 1_000;
/** The delay between two tries while somebody reads an old snapshot. */
const PAUSE_MS = 100;

interface Checkpoint {
  /** 1 if another connection had a lock. */
  readonly busy: number;
  /** Pages in the log, and how many of them are copied. */
  readonly log: number;
  readonly checkpointed: number;
}

let is_stopping = false;

/**
 * Copies the write-ahead log of the database at the path that it is sent, and empties it. Others can write while most
 * of it is copied. Only the rest needs the write lock. `stop` ends the tries.
 */
self.onmessage = async (event: MessageEvent<string>) => {
  if (event.data === 'stop') {
    is_stopping = true;
    return;
  }
  self.postMessage(await copy(event.data).catch(threadFailure));
};

async function copy(path: string): Promise<'done'> {
  const db = new Database(path, { readwrite: true, strict: true });
  try {
    // A try fails at once if there is a reader, because writes would wait for it.
    db.run('PRAGMA busy_timeout = 0');
    while (!is_stopping && !emptied(db)) await Bun.sleep(PAUSE_MS);
    return 'done';
  } finally {
    db.close();
  }
}

function emptied(db: Database): boolean {
  const { busy, log, checkpointed } = checkpoint(db, 'PASSIVE');
  if (busy !== 0 || log - checkpointed > PAGES_LEFT_MAX) return false;
  return checkpoint(db, 'TRUNCATE').busy === 0;
}

function checkpoint(db: Database, mode: 'PASSIVE' | 'TRUNCATE'): Checkpoint {
  const result = db.query<Checkpoint, []>(`PRAGMA wal_checkpoint(${mode})`).get();
  if (result === null) throw new Error('SQLite said nothing of the checkpoint');
  return result;
}
