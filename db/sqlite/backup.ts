import type { Database } from 'bun:sqlite';
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { schemaVersion } from './migrate.ts';
import { makePrivateFile } from './private-file.ts';

/** How many backups of earlier updates stay beside the database. */
export const BACKUPS_KEPT = 3;

/** `backup-<UTC time>-schema-<version>.sqlite`; `.partial` while it is written. */
const BACKUP_NAME = /^backup-[0-9TZ.-]+-schema-\d+\.sqlite$/;
const UNFINISHED = '.partial';

/**
 * Copies the database into a file beside it: whole and on disk, or not at all. Only the owner can read the file. Its
 * name has the time and the version of its schema. Returns the copy's path. Throws what SQLite and the file system
 * throw.
 */
export function backUp(client: Database, at_ms: number): string {
  const directory = dirname(client.filename);
  const time = new Date(at_ms).toISOString().replaceAll(':', '-');
  const path = join(directory, `backup-${time}-schema-${schemaVersion(client)}.sqlite`);
  const unfinished = path + UNFINISHED;
  makePrivateFile(unfinished);
  try {
    client.run('VACUUM INTO ?', [unfinished]);
    reachDisk(unfinished);
    renameSync(unfinished, path);
    reachDisk(directory);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  return path;
}

/** The names of the directory's backups, oldest first. */
export function backupNames(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => BACKUP_NAME.test(name))
    .sort();
}

/** Removes all but the newest backups, and what a killed process left of one. */
export function removeOldBackups(directory: string): void {
  const unfinished = readdirSync(directory).filter(
    (name) => name.endsWith(UNFINISHED) && BACKUP_NAME.test(name.slice(0, -UNFINISHED.length)),
  );
  for (const name of [...unfinished, ...backupNames(directory).slice(0, -BACKUPS_KEPT)]) {
    rmSync(join(directory, name));
  }
}

function reachDisk(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
