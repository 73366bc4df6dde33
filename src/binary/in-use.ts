import { Database } from 'bun:sqlite';
import { closeSync, existsSync, openSync, renameSync, type Stats, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../system-error-code.ts';

/**
 * In every unpacked folder: locked by each process that runs from there, and last changed when the last one started. The
 * operating system drops the lock of a process that ends, however it ends, and sees those of other containers too.
 */
export const USE_FILE = 'in-use';

const OWNER_ONLY = 0o600;
/** Whoever removes a folder holds its lock for less. */
const WAIT_MS = 2_000;

/** A lock ends when its connection is collected, so that those of this process stay reachable. */
const held = new Set<Database>();

function useFile(folder: string): Stats | undefined {
  return statSync(join(folder, USE_FILE), { throwIfNoEntry: false });
}

/** A lock that any number of processes have together, but none beside an exclusive one. Throws what SQLite throws. */
function sharedLock(path: string): Database {
  const lock = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // Never ended: a transaction that has read keeps its lock until the connection is closed.
    lock.run('BEGIN');
    lock.query('SELECT name FROM sqlite_schema').all();
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/**
 * Marks the folder as used until this process ends; false when somebody removes it just now. A folder that cannot be
 * marked is used all the same: where nothing can be written, nothing can be removed either.
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
 * Marks a folder as one that this process writes, until the returned function is called or the process ends. One that
 * cannot be marked is written all the same.
 */
export function markWritten(folder: string): () => void {
  const path = join(folder, USE_FILE);
  const unlocked = `${path}.new`;
  try {
    closeSync(openSync(unlocked, 'a', OWNER_ONLY));
    const lock = sharedLock(unlocked);
    // Under its name only now: a mark without a lock says that nobody writes any more.
    renameSync(unlocked, path);
    return () => lock.close();
  } catch {
    // Nothing is lost: such a folder is a leftover by its age alone.
    return () => undefined;
  }
}

/** When the last process started from the folder, in Unix milliseconds; undefined where nobody ever marked it. */
export function lastUse_ms(folder: string): number | undefined {
  return useFile(folder)?.mtimeMs;
}

/** Keeps every process from using the folder, until the returned function is called; null where one uses it. */
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
