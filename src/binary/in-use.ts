import { Database } from 'bun:sqlite';
import { closeSync, existsSync, openSync, renameSync, type Stats, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../errors/system-error-code.ts';

/**
 * A file in every unpacked folder. Each process that runs from the folder locks it, and it was last changed
 * when the last one started. The operating system drops the lock of a process however it ends, and sees those
 * of other containers too.
 */
export const USE_FILE = 'in-use';

const OWNER_ONLY = 0o600;
/** The longest wait for a lock; a process that removes a folder holds it for less. */
const WAIT_MS = 2_000;

/**
 * The locks of this process. They must stay reachable, because a lock ends when its connection is collected.
 */
const held = new Set<Database>();

function useFile(folder: string): Stats | undefined {
  return statSync(join(folder, USE_FILE), { throwIfNoEntry: false });
}

/** Takes a shared lock, which excludes only exclusive ones. Throws as SQLite does. */
function sharedLock(path: string): Database {
  const lock = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // The transaction is never ended: after a read it keeps its lock until the connection is closed.
    lock.run('BEGIN');
    lock.query('SELECT name FROM sqlite_schema').all();
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/**
 * Marks the folder as used until this process ends. Returns false when another process is removing it. An
 * unwritable folder is used without a mark, because it cannot be removed either.
 */
export function markInUse(folder: string, now_ms: number): boolean {
  const path = join(folder, USE_FILE);
  let lock: Database | undefined;
  let marked: Stats | undefined;
  try {
    closeSync(openSync(path, 'a', OWNER_ONLY));
    marked = useFile(folder);
    lock = sharedLock(path);
    utimesSync(path, now_ms / 1_000, now_ms / 1_000);
  } catch (error) {
    if (systemErrorCode(error) === 'SQLITE_BUSY') return false;
  }
  // A lock on a file that was removed meanwhile protects nothing.
  if (!existsSync(folder) || useFile(folder)?.ino !== marked?.ino) {
    lock?.close();
    return false;
  }
  if (lock !== undefined) held.add(lock);
  return true;
}

/**
 * Marks a folder as being written by this process, until the returned function is called or the process ends.
 * Without a mark, the folder is written all the same.
 */
export function markWritten(folder: string): () => void {
  const path = join(folder, USE_FILE);
  const unlocked = `${path}.new`;
  try {
    closeSync(openSync(unlocked, 'a', OWNER_ONLY));
    const lock = sharedLock(unlocked);
    // The file gets its name only now, because a mark without a lock means that its writer has ended.
    renameSync(unlocked, path);
    return () => lock.close();
  } catch {
    // Nothing is lost: the age of such a folder shows that it is a leftover.
    return () => undefined;
  }
}

/**
 * Returns the time at which the last process started from the folder, in Unix milliseconds; undefined without
 * a mark.
 */
export function lastUse_ms(folder: string): number | undefined {
  return useFile(folder)?.mtimeMs;
}

/**
 * Keeps every process from using the folder, until the returned function is called. Returns null where one
 * uses it.
 */
export function claimUnused(folder: string): (() => void) | null {
  const lock = new Database(join(folder, USE_FILE), { readwrite: true, create: false, strict: true });
  try {
    lock.run('BEGIN EXCLUSIVE');
    return () => lock.close();
  } catch {
    lock.close();
    return null;
  }
}
