import { threadFailure } from '../../src/problems/causes.ts';
import { writeBackup } from './write-backup.ts';

declare const self: Worker;

/** A backup that a thread is to write. */
export interface BackupTask {
  /** The database's file. */
  readonly database: string;
  /** Where the backup goes. */
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
