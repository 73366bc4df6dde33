import { Database } from 'bun:sqlite';
import { join } from 'node:path';

/** Another server already runs on this data directory. */
export class DataDirectoryInUse extends Error {
  override readonly name = 'DataDirectoryInUse';
}

/**
 * Claims the data directory for one server, because two would keep separate rate limits and holds. The claim is an
 * exclusive SQLite lock, which the operating system drops when the process ends, however it ends.
 * Returns the function that gives the claim back. Throws `DataDirectoryInUse`.
 */
export function lockDataDirectory(directory: string): () => void {
  const lock = new Database(join(directory, 'server.lock'), { create: true, readwrite: true, strict: true });
  try {
    lock.run('PRAGMA busy_timeout = 0');
    lock.run('PRAGMA locking_mode = EXCLUSIVE');
    lock.run('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') {
      throw new DataDirectoryInUse(`another server is running on ${directory}`, { cause: error });
    }
    throw error;
  }
  return () => lock.close();
}
