import { type Stats, statSync } from 'node:fs';
import type { Db } from './connection.ts';

const LOOK_EVERY_MS = 1_000;

/** The database file was replaced or removed while this process had it open. */
export class DatabaseFileGone extends Error {
  override readonly name = 'DatabaseFileGone';
}

/**
 * Returns a function that throws `DatabaseFileGone` once the path names another file than now, or none. It is for work
 * that opens the path again. Throws the system's errors.
 */
export function fileGuard(path: string): () => void {
  const opened = statSync(path, { throwIfNoEntry: false });
  return () => {
    if (isThere(path, opened)) return;
    const remedy = 'nothing is charged or answered: stop the service, put the right file there, and start it';
    throw new DatabaseFileGone(`${path} was replaced or removed under the running service, so ${remedy}`);
  };
}

/**
 * Looks each second that the path still names the file that `db` has open, because writes to another one are lost with
 * its last handle. Once it does not, nothing is written through `db` any more, and `onGone` is called. Returns the
 * function that ends the looks. Throws the system's errors.
 */
export function watchFile(db: Db, onGone: (error: unknown) => void): () => void {
  const requireThere = fileGuard(db.$client.filename);
  const timer = setInterval(() => {
    try {
      requireThere();
    } catch (error) {
      clearInterval(timer);
      db.$client.run('PRAGMA query_only = ON');
      onGone(error);
    }
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Returns true also where the file system fails: it says nothing of the file, and writes fail by themselves. */
function isThere(path: string, opened: Stats | undefined): boolean {
  try {
    const now = statSync(path, { throwIfNoEntry: false });
    return now?.ino === opened?.ino && now?.dev === opened?.dev;
  } catch {
    return true;
  }
}
