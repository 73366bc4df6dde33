import { Database } from 'bun:sqlite';
import { linkSync, lstatSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { OTHERS_WRITE, OWNER_ONLY_DIRECTORY } from '../../src/files/file-permissions.ts';
import { failedChecks } from '../../src/store/audit-report.ts';
import { SchemaRefused } from '../schema-state.ts';
import { runAudit } from './audit.ts';
import { copyDatabase, reachDisk, UNFINISHED } from './backup.ts';
import { BackupRefused, requireWhole } from './check-file.ts';
import { compressFile, hashOf, hashOfCompressed } from './compression.ts';
import { openReadOnly } from './connection.ts';
import { foreignObject } from './foreign-objects.ts';
import { FileInUse, lockFile } from './lock.ts';
import { schemaState } from './migrate.ts';
import { makeNewPrivateFile } from './private-file.ts';

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

/** The options of a backup. */
export interface BackupOptions {
  /** The path for a backup whose books are not right, which replaces an earlier one there; without it none is kept. */
  readonly unsound?: string;
}

/**
 * Writes a backup of the database to a new file. One read transaction copies it, so that others can write. It is
 * checked, compressed, read back and flushed to disk before it gets its name. It overwrites nothing, and a failed
 * backup leaves no file but `unsound`. `onClaimed` is called once the unfinished files are this backup's own. Rejects with
 * `BackupRefused`, and with the errors of SQLite and the file system.
 */
export async function writeBackup(
  database: string,
  file: string,
  { unsound }: BackupOptions = {},
  onClaimed: () => void = () => {},
): Promise<void> {
  const { copy, compressed } = unfinishedFiles(file);
  const unclaim = claim(file);
  onClaimed();
  try {
    const client = new Database(database, { readonly: true, strict: true });
    try {
      copyDatabase(client, copy);
    } finally {
      client.close();
    }
    const broken = brokenChecks(copy);
    const is_sound = broken.length === 0;
    const said = `The database is not sound (${broken.join(', ')}), so that no backup was made of it: run "tds audit".`;
    if (!is_sound && unsound === undefined) throw new BackupRefused(said);
    makeNewPrivateFile(compressed);
    await compressFile(copy, compressed);
    if ((await hashOf(copy)) !== (await hashOfCompressed(compressed)))
      throw new BackupRefused('What was written cannot be read back as it was: check the disk.');
    if (is_sound) giveName(compressed, file);
    else if (unsound !== undefined) renameSync(compressed, unsound);
    reachDisk(dirname(file));
    if (!is_sound) throw new BackupRefused(`${said} ${unsound} has what is there.`);
  } finally {
    unclaim();
    removeUnfinished(file);
  }
}

/**
 * Makes the folder of an unfinished backup without what a killed process left. Its lock keeps other processes from
 * taking these files for left ones. Returns the function that frees it. Throws `BackupRefused` while another has it, and
 * for a folder that others can write.
 */
function claim(file: string): () => void {
  const { folder, copy, compressed } = unfinishedFiles(file);
  try {
    mkdirSync(folder, { mode: OWNER_ONLY_DIRECTORY });
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    requireLeftFolder(folder);
  }
  try {
    const unclaim = lockFile(join(folder, 'lock'));
    for (const path of [copy, `${copy}-journal`, compressed]) rmSync(path, { force: true });
    return unclaim;
  } catch (error) {
    if (!(error instanceof FileInUse)) throw error;
    throw new BackupRefused(`Another command writes ${file}: wait for it, or name another file.`, {
      cause: error,
    });
  }
}

/** Throws `BackupRefused` for a folder that no killed backup has left: its owner could read and replace the copy. */
function requireLeftFolder(folder: string): void {
  const found = lstatSync(folder);
  const { mode, uid } = found;
  const owners = [process.getuid?.() ?? uid, statSync(dirname(folder)).uid];
  if (found.isDirectory() && owners.includes(uid) && (mode & OTHERS_WRITE) === 0) return;
  throw new BackupRefused(
    `${folder} is in the way, and others can write it: remove it, or name another file.`,
  );
}

/**
 * Returns the checks of the books that fail. Throws `BackupRefused` unless the file is whole and has this program's
 * schema.
 */
function brokenChecks(path: string): readonly string[] {
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
    return failedChecks(runAudit(db).checks).map(({ name }) => name);
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
