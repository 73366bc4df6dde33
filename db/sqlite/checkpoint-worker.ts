import { Database } from 'bun:sqlite';
import { threadFailure } from '../../src/problems/causes.ts';

declare const self: Worker;

/** So little that no write waits long for it. */
const PAGES_LEFT_MAX = 1_000;
/** Between two tries while somebody reads an old state of the database. */
const PAUSE_MS = 100;

interface Checkpoint {
  /** 1 when another connection's lock was met. */
  readonly busy: number;
  /** Pages in the log, and how many of them are copied. */
  readonly log: number;
  readonly checkpointed: number;
}

let is_stopping = false;

/**
 * Copies the write-ahead log of the database of the path that it is sent, and empties it. Most of it is copied while
 * others write; only for the rest the write lock is taken. `stop` ends the tries.
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
    // A reader must make the try fail at once: writes would wait for it meanwhile.
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
