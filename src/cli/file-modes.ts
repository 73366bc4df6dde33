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

/** The same for all that the service keeps in it: the database, its log, its backups, and the lock. */
export function keepFilesPrivate(directory: string, database_file: string): void {
  const files = [database_file, `${database_file}-wal`, `${database_file}-shm`, LOCK_FILE, SECRET_FILE];
  for (const name of [...files, ...backupNames(directory)]) keepPrivate(join(directory, name), 'file');
}

function keepPrivate(path: string, kind: Reach['kind']): void {
  const user_id = process.getuid?.();
  if (user_id === undefined) return;
  const found = statSync(path, { throwIfNoEntry: false });
  // SQLite makes and removes files beside the database while a server runs.
  if (found === undefined) return;
  const { mode, uid } = found;
  const verdict = judgeReach({ kind, mode, uid }, user_id);
  if (verdict === 'private') return;
  const [before, after] = [mode & PERMISSIONS, mode & PERMISSIONS & ~OTHERS].map((bits) => bits.toString(8));
  if (verdict === 'refuse') {
    throw new CommandFailed(
      `${path} is open to other users (mode ${before}): let its owner run "chmod ${after} ${path}", or name another directory with --data.`,
    );
  }
  chmodSync(path, mode & ~OTHERS & 0o7777);
  process.stderr.write(
    `tds: ${path} was open to other users (mode ${before}); now it is not (mode ${after}).\n`,
  );
}
