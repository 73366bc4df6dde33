import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { OWNER_ONLY_DIRECTORY } from '../files/file-permissions.ts';
import { CommandFailed } from './command-failed.ts';

const DEFAULT_NAME = 'backups';

interface BackupPlace {
  readonly data: string;
  /** Undefined for a folder of the data directory. */
  readonly backupDirectory?: string | undefined;
}

/** Returns the path of the folder of scheduled backups, which may not exist. */
export function backupDirectoryPath({ data, backupDirectory }: BackupPlace): string {
  return backupDirectory ?? join(data, DEFAULT_NAME);
}

/**
 * Returns the same path, and creates the folder if it is in the data directory. A configured folder must
 * exist, so that an unmounted volume is noticed. Throws `CommandFailed`.
 */
export function backupDirectory(place: BackupPlace): string {
  const path = backupDirectoryPath(place);
  if (place.backupDirectory === undefined) mkdirSync(path, { recursive: true, mode: OWNER_ONLY_DIRECTORY });
  else if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new CommandFailed(
      `There is no folder ${path}: mount or make it, or name another with --backup-directory.`,
    );
  return path;
}
