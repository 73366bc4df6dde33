import { Database } from 'bun:sqlite';
import { existsSync, linkSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { failedChecks } from '../../src/store/audit-report.ts';
import type { SchemaState } from '../schema-state.ts';
import { runAudit } from './audit.ts';
import { reachDisk, UNFINISHED } from './backup.ts';
import { BackupRefused, hasAllPages, kindOfFile, requireWhole } from './check-file.ts';
import { copyFileInto, decompressFile } from './compression.ts';
import { openReadOnly } from './connection.ts';
import { foreignObject } from './foreign-objects.ts';
import { schemaState } from './migrate.ts';
import { newestEntry_ms } from './newest-time.ts';
import { makePrivateFile } from './private-file.ts';

const WRITE_AHEAD_LOG = '-wal';
/** The suffixes of SQLite's files beside a database: the write-ahead log and its index. */
const LOGS = [WRITE_AHEAD_LOG, '-shm'];

/** The result of a restore. */
export interface Restored {
  /** The path at which the previous database is kept; null if there was none. */
  readonly replaced: string | null;
  /** The restored schema. An older one is updated when the database is next opened. */
  readonly schema: SchemaState;
  /** The time of the newest movement of credit; null for none. */
  readonly newest_ms: number | null;
}

/**
 * Checks a backup, compressed or not, and makes it the database file if it is whole and its books balance. Keeps an
 * existing database beside it, under a name with the time. The caller holds the lock of the data directory. Rejects
 * with `BackupRefused`, with `SchemaRefused` for a backup of a newer version, and with the errors of SQLite and the
 * file system. A rejection leaves the database unchanged.
 */
export async function restoreBackup(backup: string, database: string, at_ms: number): Promise<Restored> {
  const unfinished = join(dirname(database), `restored${UNFINISHED}`);
  rmSync(unfinished, { force: true });
  makePrivateFile(unfinished);
  try {
    await unpack(backup, unfinished);
    const found = inspect(unfinished);
    reachDisk(unfinished);
    const replaced = existsSync(database) ? keepBeside(database, at_ms) : null;
    for (const log of LOGS) rmSync(database + log, { force: true });
    renameSync(unfinished, database);
    reachDisk(dirname(database));
    return { ...found, replaced };
  } finally {
    for (const suffix of ['', ...LOGS]) rmSync(unfinished + suffix, { force: true });
  }
}

async function unpack(backup: string, to: string): Promise<void> {
  const kind = kindOfFile(backup);
  if (kind === 'other')
    throw new BackupRefused(`${backup} is no backup: name a file that "tds backup" wrote.`);
  if (kind === 'database') requireNoLog(backup);
  try {
    await (kind === 'compressed' ? decompressFile(backup, to) : copyFileInto(backup, to));
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (!code.startsWith('ZSTD')) throw error;
    throw new BackupRefused(damaged(backup), { cause: error });
  }
  if (!hasAllPages(to)) throw new BackupRefused(damaged(backup));
}

/** Throws for a database that was not closed: its newest commits are in its write-ahead log only. */
function requireNoLog(file: string): void {
  // SQLite keeps the log beside the file itself, not beside a link to it.
  const log = statSync(realpathSync(file) + WRITE_AHEAD_LOG, { throwIfNoEntry: false });
  if (log === undefined || log.size === 0) return;
  throw new BackupRefused(
    `${file} has a write-ahead log beside it, which a restore would lose: put both into an empty data directory as tds.sqlite and tds.sqlite-wal, or use "tds backup".`,
  );
}

function damaged(backup: string): string {
  return `${backup} is damaged: restore another backup.`;
}

/** Throws unless the database is whole, has a known schema, and its books balance. */
function inspect(path: string): Omit<Restored, 'replaced'> {
  const db = openReadOnly(path);
  try {
    requireWhole(db.$client);
    const schema = schemaState(db.$client);
    if (schema === 'new') throw new BackupRefused('The backup holds nothing: name another file.');
    const foreign = foreignObject(db.$client);
    if (foreign !== null) {
      throw new BackupRefused(
        `The backup has the ${foreign}, which no version of this program made: restore another backup.`,
      );
    }
    // The audit reads tables that an older schema may lack. It can run after the update.
    const checks = schema === 'current' ? runAudit(db).checks : [];
    const broken = failedChecks(checks);
    if (broken.length > 0) {
      const [{ guarantee } = { guarantee: '' }] = broken;
      throw new BackupRefused(
        `The books in the backup are not right (${broken.map(({ name }) => name).join(', ')}: ${guarantee}): restore another backup.`,
      );
    }
    return { schema, newest_ms: newestEntry_ms(db.$client) };
  } finally {
    db.$client.close();
  }
}

/** Copies the log into the database and gives the file a second name, so that a database exists at any moment. */
function keepBeside(database: string, at_ms: number): string {
  writeLogBack(database);
  const time = new Date(at_ms).toISOString().replaceAll(':', '-');
  const kept = join(dirname(database), `${basename(database, '.sqlite')}-replaced-${time}.sqlite`);
  for (const suffix of ['', ...LOGS])
    if (existsSync(database + suffix)) linkSync(database + suffix, kept + suffix);
  reachDisk(dirname(database));
  return kept;
}

function writeLogBack(database: string): void {
  try {
    const client = new Database(database, { readwrite: true, strict: true });
    client.run('PRAGMA wal_checkpoint(TRUNCATE)');
    client.close();
  } catch {
    // Nothing is lost: an unreadable database is kept unchanged, with its log.
  }
}
