import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { systemErrorCode } from '../../src/system-error-code.ts';
import { makePrivateFile } from './private-file.ts';

/** Another process has claimed the data directory: a server, or a command that updates the database. */
export class DataDirectoryInUse extends Error {
  override readonly name = 'DataDirectoryInUse';
}

export const LOCK_FILE = 'server.lock';

/** An update of a small database takes less; a server keeps its claim for as long as it runs. */
const WAIT_MS = 2_000;

/**
 * Claims the data directory for one process: two servers would keep separate rate limits and holds, and a schema must
 * not change beneath a server. The claim is an exclusive SQLite lock, which the operating system drops when the process
 * ends, however it ends. Waits a little for a claim to end.
 * Returns the function that gives the claim back. Throws `DataDirectoryInUse`.
 */
export function lockDataDirectory(directory: string): () => void {
  const path = join(directory, LOCK_FILE);
  makePrivateFile(path);
  const lock = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // Never committed: the transaction keeps its lock until the connection is closed.
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
