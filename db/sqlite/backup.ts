import type { Database } from 'bun:sqlite';
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { schemaVersion } from './migrate.ts';
import { makePrivateFile } from './private-file.ts';

/** How many backups of earlier updates stay beside the database. */
export const BACKUPS_KEPT = 3;

/** What a name ends in while its file is written. */
export const UNFINISHED = '.partial';

/** `backup-<UTC time>-schema-<version>.sqlite`, with `.zst` where it is compressed. */
const BACKUP_NAME = /^backup-(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3}Z)-schema-\d+\.sqlite(\.zst)?$/;

/** What a name ends in of a file that is written, or of SQLite's own beside it: a kill leaves both. */
const UNFINISHED_ENDS = new RegExp(`(\\.copy)?${RegExp.escape(UNFINISHED)}(-journal|-wal|-shm)?$`);

/** The kinds of backups: copies before an update, and what `tds backup` and the schedule write. */
export type BackupKind = 'copy' | 'compressed';

/**
 * Copies the database into a file beside it: whole and on disk, or not at all. Only the owner can read the file. Its
 * name has the time and the version of its schema. Returns the copy's path. Throws what SQLite and the file system
 * throw.
 */
export function backUp(client: Database, at_ms: number): string {
  const directory = dirname(client.filename);
  const path = join(directory, backupName(at_ms, schemaVersion(client), 'copy'));
  const unfinished = path + UNFINISHED;
  try {
    copyDatabase(client, unfinished);
    renameSync(unfinished, path);
    reachDisk(directory);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  return path;
}

/** Copies the database as it is into a new file for the owner only, on disk when it returns. Others go on writing. */
export function copyDatabase(client: Database, path: string): void {
  makePrivateFile(path);
  client.run('VACUUM INTO ?', [path]);
  reachDisk(path);
}

/** The name of a backup of that time. */
export function backupName(at_ms: number, schema_version: number, kind: BackupKind): string {
  const time = new Date(at_ms).toISOString().replaceAll(':', '-');
  return `backup-${time}-schema-${schema_version}.sqlite${kind === 'compressed' ? '.zst' : ''}`;
}

/** The time in a backup's name; null for any other name. */
export function backupTime_ms(name: string): number | null {
  const found = BACKUP_NAME.exec(name);
  return found === null ? null : Date.parse(`${found[1]}:${found[2]}:${found[3]}`);
}

/** The names of the directory's backups of that kind, oldest first. */
export function backupNames(directory: string, kind: BackupKind = 'copy'): readonly string[] {
  return readdirSync(directory)
    .filter((name) => isOfKind(name, kind))
    .sort();
}

/** Removes all but the newest backups of that kind, and what a killed process left of one. */
export function removeOldBackups(directory: string, kept = BACKUPS_KEPT, kind: BackupKind = 'copy'): void {
  const unfinished = readdirSync(directory).filter(
    (name) => UNFINISHED_ENDS.test(name) && isOfKind(name.replace(UNFINISHED_ENDS, ''), kind),
  );
  for (const name of [...unfinished, ...backupNames(directory, kind).slice(0, -kept)]) {
    rmSync(join(directory, name), { force: true, recursive: true });
  }
}

/** Returns when what was written to the file, or the names in the directory, are on disk. */
export function reachDisk(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function isOfKind(name: string, kind: BackupKind): boolean {
  return BACKUP_NAME.test(name) && name.endsWith('.zst') === (kind === 'compressed');
}
