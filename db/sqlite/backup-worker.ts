import { threadFailure } from '../../src/problems/causes.ts';
import { writeBackup } from './write-backup.ts';

declare const self: Worker;

/** The task of a backup thread. */
export interface BackupTask {
  /** The database's file. */
  readonly database: string;
  /** The backup's path. */
  readonly file: string;
}

self.onmessage = async ({ data: { database, file } }: MessageEvent<BackupTask>) => {
  self.postMessage(
    await writeBackup(database, file).then(
      () => 'done',
      (error: unknown) => threadFailure(error),
    ),
  );
};
