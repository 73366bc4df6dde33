import { statSync } from 'node:fs';
import { workerScript } from '../../src/files/project-root.ts';
import { ThreadFailed, type ThreadFailure } from '../../src/problems/causes.ts';
import type { Db } from './connection.ts';

/** SQLite's own limit in pages, at which a commit also copies the log into the database. */
const AUTOCHECKPOINT_PAGES = 1_000;
/** Four times that limit. A commit copies such a log in some ten milliseconds, but needs seconds for gigabytes. */
const LARGE_BYTES = 16 * 1_024 * 1_024;
const LOOK_EVERY_MS = 1_000;
/** The looks after a failure without a new try. Its cause, such as a full disk, does not pass within seconds. */
const LOOKS_AFTER_FAILURE = 60;

/** Options of the checkpoints. */
export interface CheckpointOptions {
  /** Called when the log is large, because something reads the database for long. */
  readonly onLarge: (bytes: number) => void;
  /** Called with the error of each failed copy. Until the next try commits copy the log, however long that takes. */
  readonly onFailure: (error: Error) => void;
  readonly look_every_ms?: number;
}

/**
 * Keeps long checkpoints off the event loop. While another process reads an old snapshot, the write-ahead log cannot be
 * copied and grows. The first commit afterwards would copy all of it. So a thread copies and empties a large log.
 * Returns the function that stops it, which waits for a running copy.
 */
export function startCheckpoints(db: Db, options: CheckpointOptions): () => Promise<void> {
  const path = db.$client.filename;
  const autocheckpoint = (pages: number) => db.$client.run(`PRAGMA wal_autocheckpoint = ${pages}`);
  let copying: { readonly worker: Worker; readonly ended: Promise<void> } | undefined;

  let looks_to_skip = 0;

  const copy = async (worker: Worker): Promise<void> => {
    autocheckpoint(0);
    const { promise, resolve } = Promise.withResolvers<Error | null>();
    worker.onmessage = ({ data }: MessageEvent<'done' | ThreadFailure>) =>
      resolve(data === 'done' ? null : new ThreadFailed(data.failed.message, data.failed.causes));
    worker.onerror = (event) => resolve(new ThreadFailed(event.message, []));
    worker.postMessage(path);
    const failure = await promise;
    worker.terminate();
    copying = undefined;
    autocheckpoint(AUTOCHECKPOINT_PAGES);
    if (failure === null) return;
    looks_to_skip = LOOKS_AFTER_FAILURE;
    options.onFailure(failure);
  };

  const look = () => {
    if (looks_to_skip > 0) {
      looks_to_skip -= 1;
      return;
    }
    const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (copying !== undefined || bytes <= LARGE_BYTES) return;
    options.onLarge(bytes);
    const worker = new Worker(workerScript('db/sqlite/checkpoint-worker.ts'));
    copying = { worker, ended: copy(worker) };
  };

  const timer = setInterval(look, options.look_every_ms ?? LOOK_EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    copying?.worker.postMessage('stop');
    await copying?.ended;
  };
}
