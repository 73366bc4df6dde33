import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { systemErrorCode } from '../../src/system-error-code.ts';
import { makePrivateFile } from './private-file.ts';

/** Another process has locked the data directory: a server, or a command that updates the database. */
export class DataDirectoryInUse extends Error {
  override readonly name = 'DataDirectoryInUse';
}

export const LOCK_FILE = 'server.lock';

/**
 * The longest wait for the lock. The update of a small database takes less, and a server keeps the lock while it runs.
 */
const WAIT_MS = 2_000;

/**
 * Locks the data directory for one process. Two servers would have separate rate limits and holds, and a schema must
 * not change beneath a server. The lock is an exclusive SQLite lock, which the operating system frees when the process
 * ends. Waits a little for another process's lock. Returns the function that frees it. Throws `DataDirectoryInUse`.
 */
export function lockDataDirectory(directory: string): () => void {
  const path = join(directory, LOCK_FILE);
  makePrivateFile(path);
  const lock = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // This transaction is never committed. It keeps its lock until the connection is closed.
    lock.run('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (systemErrorCode(error) === 'SQLITE_BUSY') {
      throw new DataDirectoryInUse(`another process has claimed ${directory}`, { cause: error });
    }
    throw error;
  }
  return () => lock.close();
}
