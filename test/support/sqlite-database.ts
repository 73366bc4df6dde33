import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Db, openDatabase } from '../../db/sqlite/connection.ts';

let migrated: Uint8Array | undefined;

/** Returns the file of a migrated empty database, made once a process: migrations cost 30 ms of CPU and many waits. */
export function migratedFile(): Uint8Array {
  if (migrated !== undefined) return migrated;
  const directory = mkdtempSync(join(tmpdir(), 'tds-test-'));
  const path = join(directory, 'tds.sqlite');
  openDatabase(path).$client.close();
  migrated = readFileSync(path);
  rmSync(directory, { recursive: true });
  return migrated;
}

/** Opens the database of that path; a missing one starts as a copy of a migrated one. */
export function openMigrated(path: string): Db {
  if (!existsSync(path)) writeFileSync(path, migratedFile());
  return openDatabase(path);
}
