import { Database } from 'bun:sqlite';
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { failedChecks } from '../../src/ops/audit-report.ts';
import { systemErrorCode } from '../../src/system-error-code.ts';
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

/** What SQLite keeps beside a database: commits that are not copied into it yet, and its index of them. */
const LOGS = ['-wal', '-shm'];

/** What was put into place. */
export interface Restored {
  /** Where the database before is kept; null where there was none. */
  readonly replaced: string | null;
  /** An older schema is brought up to date when the database is next opened. */
  readonly schema: SchemaState;
  /** The time of the newest movement of credit in it; null for none. */
  readonly newest_ms: number | null;
}

/**
 * Puts a backup, compressed or not, into place as the database file, once it was found whole and its books right. A
 * database that is there is kept beside it under a name of that time. Call it with the claim of the data directory.
 * Rejects with `BackupRefused`, with `SchemaRefused` for a backup of a newer version, and with what SQLite and the file
 * system throw. The database is then as it was.
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
  try {
    await (kind === 'compressed' ? decompressFile(backup, to) : copyFileInto(backup, to));
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (!code.startsWith('ZSTD')) throw error;
    throw new BackupRefused(damaged(backup), { cause: error });
  }
  if (!hasAllPages(to)) throw new BackupRefused(damaged(backup));
}

function damaged(backup: string): string {
  return `${backup} is damaged: restore another backup.`;
}

/** Throws unless the database is whole, of a schema that this program knows, and right in its books. */
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
    // The audit reads tables that an older schema may lack. Whoever updates it next can audit it.
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

/** Gives the database a second name, with what its log holds, so that there is a database at any moment. */
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
    // Nothing is lost: a database that cannot be read is kept with its log as they are.
  }
}
