import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { backupNames } from '../../db/sqlite/backup.ts';
import { LOCK_FILE } from '../../db/sqlite/lock.ts';
import { SECRET_FILE } from '../console/people/secret.ts';
import { OTHERS_WRITE, ROOT_USER_ID } from '../files/file-permissions.ts';
import { CommandFailed } from './command-failed.ts';

const OTHERS = 0o077;
const PERMISSIONS = 0o777;

/** The facts from `stat` that decide who can reach a file or directory. */
export interface Reach {
  readonly kind: 'directory' | 'file';
  readonly mode: number;
  readonly uid: number;
}

/**
 * Judges if the service may use it: as it is, after other users' access is removed, or not at all. A
 * directory that others can write is refused, because they could have put files there that stay.
 */
export function judgeReach({ kind, mode, uid }: Reach, user_id: number): 'private' | 'tighten' | 'refuse' {
  if ((mode & OTHERS) === 0) return 'private';
  if (kind === 'directory' && (mode & OTHERS_WRITE) !== 0) return 'refuse';
  return user_id === uid || user_id === ROOT_USER_ID ? 'tighten' : 'refuse';
}

/**
 * Removes other users' access to the data directory, and reports it on standard error. Throws `CommandFailed`
 * where that fails or is not enough. Does nothing on systems without such modes.
 */
export function keepDirectoryPrivate(directory: string): void {
  keepPrivate(directory, 'directory');
}

/**
 * Returns the reason, as one sentence, why the data directory must not be used as it is; null if it may be,
 * or is missing.
 */
export function whyOpenToOthers(directory: string): string | null {
  const found = reachOf(directory, 'directory');
  return found?.verdict === 'refuse' ? openSentence(directory, found.mode) : null;
}

/**
 * Does as `keepDirectoryPrivate` for the files of the service: the database, its log, its backups, and the
 * lock.
 */
export function keepFilesPrivate(directory: string, database_file: string): void {
  const files = [database_file, `${database_file}-wal`, `${database_file}-shm`, LOCK_FILE, SECRET_FILE];
  for (const name of [...files, ...backupNames(directory)]) keepPrivate(join(directory, name), 'file');
}

/**
 * Returns the mode of the path and the judgement; null where it is missing, or the system has no such modes.
 */
function reachOf(
  path: string,
  kind: Reach['kind'],
): { readonly mode: number; readonly verdict: ReturnType<typeof judgeReach> } | null {
  const user_id = process.getuid?.();
  const found = statSync(path, { throwIfNoEntry: false });
  if (user_id === undefined || found === undefined) return null;
  const { mode, uid } = found;
  return { mode, verdict: judgeReach({ kind, mode, uid }, user_id) };
}

/** Returns the mode in octal, as it is and without other users' access. */
function modesOf(mode: number): { readonly before: string; readonly after: string } {
  const permissions = mode & PERMISSIONS;
  return { before: permissions.toString(8), after: (permissions & ~OTHERS).toString(8) };
}

function openSentence(path: string, mode: number): string {
  const { before, after } = modesOf(mode);
  return `${path} is open to other users (mode ${before}): let its owner run "chmod ${after} ${path}", or name another directory with --data.`;
}

function keepPrivate(path: string, kind: Reach['kind']): void {
  const found = reachOf(path, kind);
  // SQLite creates and removes files beside the database while a server runs.
  if (found === null || found.verdict === 'private') return;
  const { mode, verdict } = found;
  if (verdict === 'refuse') throw new CommandFailed(openSentence(path, mode));
  chmodSync(path, mode & ~OTHERS & 0o7777);
  const { before, after } = modesOf(mode);
  process.stderr.write(
    `tds: ${path} was open to other users (mode ${before}); now it is not (mode ${after}).\n`,
  );
}
