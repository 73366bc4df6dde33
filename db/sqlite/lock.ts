import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { makePrivateFile } from './private-file.ts';

/** Another process has locked the file. */
export class FileInUse extends Error {
  override readonly name = 'FileInUse';
}

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
 * not change beneath a server. Waits a little for another process's lock. Returns the function that frees it. Throws
 * `DataDirectoryInUse`.
 */
export function lockDataDirectory(directory: string): () => void {
  try {
    return lockFile(join(directory, LOCK_FILE));
  } catch (error) {
    if (!(error instanceof FileInUse)) throw error;
    throw new DataDirectoryInUse(`another process has claimed ${directory}`, { cause: error });
  }
}

/**
 * Makes a file, and locks it for one process. The lock is an exclusive SQLite lock, which the operating system frees
 * when the process ends. Waits a little for another process's lock. Returns the function that frees it. Throws
 * `FileInUse`.
 */
export function lockFile(path: string): () => void {
  makePrivateFile(path);
  const lock = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // This transaction is never committed. It keeps its lock until the connection is closed.
    lock.run('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (systemErrorCode(error) === 'SQLITE_BUSY') {
      throw new FileInUse(`another process has locked ${path}`, { cause: error });
    }
    throw error;
  }
  return () => lock.close();
}
