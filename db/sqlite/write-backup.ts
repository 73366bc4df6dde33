import { Database } from 'bun:sqlite';
import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OWNER_ONLY_DIRECTORY } from '../../src/file-permissions.ts';
import { failedChecks } from '../../src/ops/audit-report.ts';
import { systemErrorCode } from '../../src/system-error-code.ts';
import { SchemaRefused } from '../schema-state.ts';
import { runAudit } from './audit.ts';
import { copyDatabase, reachDisk, UNFINISHED } from './backup.ts';
import { BackupRefused, requireWhole } from './check-file.ts';
import { compressFile, hashOf, hashOfCompressed } from './compression.ts';
import { openReadOnly } from './connection.ts';
import { foreignObject } from './foreign-objects.ts';
import { schemaState } from './migrate.ts';
import { makePrivateFile } from './private-file.ts';

/**
 * Where a backup is written before it has its name: the copy in a folder of its own, and the copy compressed. SQLite
 * keeps a journal beside the copy, and a thread that is being stopped cannot make another one once the folder is gone.
 */
function unfinishedFiles(file: string) {
  const folder = `${file}.copy${UNFINISHED}`;
  return { folder, copy: join(folder, 'copy.sqlite'), compressed: file + UNFINISHED } as const;
}

/** Removes what a backup that was not finished has left. */
export function removeUnfinished(file: string): void {
  const { folder, compressed } = unfinishedFiles(file);
  for (const path of [folder, compressed]) rmSync(path, { force: true, recursive: true, maxRetries: 3 });
}

/**
 * Writes a backup of the database to a new file. It is copied in one read transaction, so that others go on writing.
 * Then it is checked, compressed, read back, and on disk before it has its name. Nothing is overwritten, and nothing is
 * left of a backup that fails. Rejects with `BackupRefused`, and with what SQLite and the file system throw.
 */
export async function writeBackup(database: string, file: string): Promise<void> {
  const { folder, copy, compressed } = unfinishedFiles(file);
  removeUnfinished(file);
  try {
    mkdirSync(folder, { mode: OWNER_ONLY_DIRECTORY });
    const client = new Database(database, { readonly: true, strict: true });
    try {
      copyDatabase(client, copy);
    } finally {
      client.close();
    }
    requireSound(copy);
    makePrivateFile(compressed);
    await compressFile(copy, compressed);
    if ((await hashOf(copy)) !== (await hashOfCompressed(compressed)))
      throw new BackupRefused('What was written cannot be read back as it was: check the disk.');
    giveName(compressed, file);
    reachDisk(dirname(file));
  } finally {
    removeUnfinished(file);
  }
}

/** Throws `BackupRefused` unless the file is whole, has this program's schema, and its books are right. */
function requireSound(path: string): void {
  const db = openReadOnly(path);
  try {
    if (schemaState(db.$client) !== 'current') throw new SchemaRefused('has another schema');
    requireWhole(db.$client);
    // "tds restore" would refuse it.
    const foreign = foreignObject(db.$client);
    if (foreign !== null) {
      throw new BackupRefused(
        `The database has the ${foreign}, which no version of this program made, so that no backup was made of it: drop it.`,
      );
    }
    const { checks } = runAudit(db);
    const broken = failedChecks(checks).map(({ name }) => name);
    if (broken.length > 0)
      throw new BackupRefused(
        `The database is not sound (${broken.join(', ')}), so that no backup was made of it: run "tds audit".`,
      );
  } finally {
    db.$client.close();
  }
}

/** Renames a file, and fails with `EEXIST` where the new name is taken, which `rename` would overwrite. */
function giveName(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw error;
    // A file system without links, such as that of a memory stick. The name was free when the backup began.
    renameSync(from, to);
  }
}
