import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { backupNames } from '../../db/sqlite/backup.ts';
import { LOCK_FILE } from '../../db/sqlite/lock.ts';
import { SECRET_FILE } from '../console/people/secret.ts';
import { OTHERS_WRITE, ROOT_USER_ID } from '../file-permissions.ts';
import { CommandFailed } from './command-failed.ts';

const OTHERS = 0o077;
const PERMISSIONS = 0o777;

/** What `stat` says of a file or directory, as far as it decides who can reach it. */
export interface Reach {
  readonly kind: 'directory' | 'file';
  readonly mode: number;
  readonly uid: number;
}

/**
 * Whether the service may use it: as it is, after taking other users' access away, or not at all. A directory that
 * others can write is refused: they could have put other files there, and that is not undone by closing it.
 */
export function judgeReach({ kind, mode, uid }: Reach, user_id: number): 'private' | 'tighten' | 'refuse' {
  if ((mode & OTHERS) === 0) return 'private';
  if (kind === 'directory' && (mode & OTHERS_WRITE) !== 0) return 'refuse';
  return user_id === uid || user_id === ROOT_USER_ID ? 'tighten' : 'refuse';
}

/**
 * Takes other users' access to the data directory away, and says so on standard error. Throws `CommandFailed` where
 * that cannot be done or would not be enough. Does nothing on systems without such modes.
 */
export function keepDirectoryPrivate(directory: string): void {
  keepPrivate(directory, 'directory');
}

/** Why the data directory must not be used as it is, as one sentence; null where it may be, or is not there. */
export function whyOpenToOthers(directory: string): string | null {
  const found = reachOf(directory, 'directory');
  return found?.verdict === 'refuse' ? openSentence(directory, found.mode) : null;
}

/** `keepDirectoryPrivate` for all that the service keeps in it: the database, its log, its backups, and the lock. */
export function keepFilesPrivate(directory: string, database_file: string): void {
  const files = [database_file, `${database_file}-wal`, `${database_file}-shm`, LOCK_FILE, SECRET_FILE];
  for (const name of [...files, ...backupNames(directory)]) keepPrivate(join(directory, name), 'file');
}

/** Who can reach the path, and whether that may be; null where it is not there, or the system has no such modes. */
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

/** The mode as people write it, as it is and without other users' access. */
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
  // SQLite makes and removes files beside the database while a server runs.
  if (found === null || found.verdict === 'private') return;
  const { mode, verdict } = found;
  if (verdict === 'refuse') throw new CommandFailed(openSentence(path, mode));
  chmodSync(path, mode & ~OTHERS & 0o7777);
  const { before, after } = modesOf(mode);
  process.stderr.write(
    `tds: ${path} was open to other users (mode ${before}); now it is not (mode ${after}).\n`,
  );
}
