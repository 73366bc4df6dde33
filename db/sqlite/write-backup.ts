import { Database } from 'bun:sqlite';
import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { OWNER_ONLY_DIRECTORY } from '../../src/files/file-permissions.ts';
import { failedChecks } from '../../src/store/audit-report.ts';
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
 * Returns the paths of an unfinished backup: the copy in its own folder, and the compressed copy. SQLite keeps a
 * journal beside the copy. Once the folder is gone, a thread that is being stopped cannot create another journal.
 */
function unfinishedFiles(file: string) {
  const folder = `${file}.copy${UNFINISHED}`;
  return { folder, copy: join(folder, 'copy.sqlite'), compressed: file + UNFINISHED } as const;
}

/** Removes the files of an unfinished backup. */
export function removeUnfinished(file: string): void {
  const { folder, compressed } = unfinishedFiles(file);
  for (const path of [folder, compressed]) rmSync(path, { force: true, recursive: true, maxRetries: 3 });
}

/**
 * Writes a backup of the database to a new file. One read transaction copies it, so that others can write. It is
 * checked, compressed, read back and flushed to disk before it gets its name. It overwrites nothing, and a failed
 * backup leaves no file. Rejects with `BackupRefused`, and with the errors of SQLite and the file system.
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

/** Throws `BackupRefused` unless the file is whole, has this program's schema, and its books balance. */
function requireSound(path: string): void {
  const db = openReadOnly(path);
  try {
    if (schemaState(db.$client) !== 'current') throw new SchemaRefused('has another schema');
    requireWhole(db.$client);
    // "tds restore" would refuse such a backup.
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

/** Renames a file. Fails with `EEXIST` if the new name is taken, where `rename` would overwrite it. */
function giveName(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw error;
    // The file system has no hard links, such as that of a memory stick. The name was free when the backup began.
    renameSync(from, to);
  }
}
