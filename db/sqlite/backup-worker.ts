import { threadFailure } from '../../src/problems/causes.ts';
import { type BackupOptions, writeBackup } from './write-backup.ts';

declare const self: Worker;

/** The task of a backup thread. */
export interface BackupTask extends BackupOptions {
  /** The database's file. */
  readonly database: string;
  /** The backup's path. */
  readonly file: string;
}

self.onmessage = async ({ data: { database, file, ...options } }: MessageEvent<BackupTask>) => {
  self.postMessage(
    await writeBackup(database, file, options, () => self.postMessage('claimed')).then(
      () => 'done',
      (error: unknown) => threadFailure(error),
    ),
  );
};
