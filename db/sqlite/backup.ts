import type { Database } from 'bun:sqlite';
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { schemaVersion } from './migrate.ts';
import { makeNewPrivateFile } from './private-file.ts';

/** The number of backups of earlier updates that are kept beside the database. */
export const BACKUPS_KEPT = 3;

/** The suffix of unfinished files. */
export const UNFINISHED = '.partial';

/** `backup-<UTC time>-schema-<version>.sqlite`, with `.zst` where it is compressed. */
const BACKUP_NAME = /^backup-(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3}Z)-schema-\d+\.sqlite(\.zst)?$/;

/** The suffixes of unfinished files and of SQLite's files beside them. A kill leaves both. */
const UNFINISHED_ENDS = new RegExp(`(\\.copy)?${RegExp.escape(UNFINISHED)}(-journal|-wal|-shm)?$`);

/** The kinds of backups: copies before an update, and compressed ones from `tds backup` and the schedule. */
export type BackupKind = 'copy' | 'compressed';

/**
 * Copies the database into a file beside it: whole and on disk, or not at all. Only the owner can read the file, whose
 * name has the time and the schema's version. Returns the copy's path. Throws the errors of SQLite and the file system.
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

/**
 * Copies the database into a new file for the owner only, which is on disk when this returns. Others can write
 * meanwhile. Throws `EEXIST` for a file that is there: somebody else may own it, and read what is written to it.
 */
export function copyDatabase(client: Database, path: string): void {
  makeNewPrivateFile(path);
  client.run('VACUUM INTO ?', [path]);
  reachDisk(path);
}

/** Returns the name of a backup of that time. */
export function backupName(at_ms: number, schema_version: number, kind: BackupKind): string {
  const time = new Date(at_ms).toISOString().replaceAll(':', '-');
  return `backup-${time}-schema-${schema_version}.sqlite${kind === 'compressed' ? '.zst' : ''}`;
}

/** Returns the time in a backup's name; null for any other name. */
export function backupTime_ms(name: string): number | null {
  const found = BACKUP_NAME.exec(name);
  return found === null ? null : Date.parse(`${found[1]}:${found[2]}:${found[3]}`);
}

/** Returns false for a name with a time ahead of the clock, such as after the clock was set back. */
export function isOfPast(name: string, now_ms: number): boolean {
  return (backupTime_ms(name) ?? Number.POSITIVE_INFINITY) <= now_ms;
}

/** Returns the names of the directory's backups of that kind, oldest first. */
export function backupNames(directory: string, kind: BackupKind = 'copy'): readonly string[] {
  return readdirSync(directory)
    .filter((name) => isOfKind(name, kind))
    .sort();
}

/**
 * Removes all but the newest backups of that kind. Names ahead of the clock stay and are not counted, because they would
 * push out each new backup while the clock is behind them.
 */
export function removeOldBackups(
  directory: string,
  now_ms: number,
  { kept = BACKUPS_KEPT, kind = 'copy' }: { readonly kept?: number; readonly kind?: BackupKind } = {},
): void {
  const counted = backupNames(directory, kind).filter((name) => isOfPast(name, now_ms));
  for (const name of counted.slice(0, -kept)) rmSync(join(directory, name), { force: true });
}

/**
 * Removes the unfinished backups of that kind that killed processes left, whose space the next backup may need. The
 * caller has no such backup in progress; `tds backup` writes under names of its own.
 */
export function removeUnfinishedBackups(directory: string, kind: BackupKind): void {
  for (const name of readdirSync(directory)) {
    const is_unfinished = UNFINISHED_ENDS.test(name) && isOfKind(name.replace(UNFINISHED_ENDS, ''), kind);
    if (is_unfinished) rmSync(join(directory, name), { force: true, recursive: true });
  }
}

/** Flushes a file, or the names in a directory, to the disk. */
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
