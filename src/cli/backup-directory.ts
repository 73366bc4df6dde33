import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { OWNER_ONLY_DIRECTORY } from '../file-permissions.ts';
import { CommandFailed } from './command-failed.ts';

const DEFAULT_NAME = 'backups';

interface BackupPlace {
  readonly data: string;
  /** Undefined is a folder of the data directory. */
  readonly backupDirectory?: string | undefined;
}

/** The path of the folder of the scheduled backups, whether it is there or not. */
export function backupDirectoryPath({ data, backupDirectory }: BackupPlace): string {
  return backupDirectory ?? join(data, DEFAULT_NAME);
}

/**
 * The same, made when it belongs to the data directory. One that is named must be there, so that a volume that is not
 * mounted is noticed. Throws `CommandFailed`.
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
