import { workerScript } from '../../src/files/project-root.ts';
import { ThreadFailed, type ThreadFailure } from '../../src/problems/causes.ts';
import type { BackupTask } from './backup-worker.ts';
import { removeUnfinished } from './write-backup.ts';

/** Writes a backup in a thread, beside the event loop and its writes. */
export class BackupThread {
  readonly #worker = new Worker(workerScript('db/sqlite/backup-worker.ts'));
  readonly #done = Promise.withResolvers<void>();
  readonly #claimed = Promise.withResolvers<boolean>();

  constructor(private readonly task: BackupTask) {
    const { resolve, reject } = this.#done;
    this.#worker.onmessage = ({ data }: MessageEvent<'claimed' | 'done' | ThreadFailure>) => {
      this.#claimed.resolve(data === 'claimed');
      if (data === 'claimed') return;
      if (data === 'done') resolve();
      else reject(new ThreadFailed(data.failed.message, data.failed.causes));
    };
    this.#worker.onerror = (event) => {
      this.#claimed.resolve(false);
      reject(new ThreadFailed(event.message, []));
    };
    // The process may exit before the thread ends.
    this.#worker.unref();
    this.#worker.postMessage(task);
  }

  /** Resolves when the backup is on disk under its name. Rejects with `ThreadFailed` if it failed. */
  async written(): Promise<void> {
    try {
      await this.#done.promise;
    } finally {
      this.#worker.terminate();
    }
  }

  /** Resolves with true once the unfinished files are this backup's own, and with false if they never become so. */
  hasClaimed(): Promise<boolean> {
    return this.#claimed.promise;
  }

  /** Stops the backup, and removes its unfinished files, which must be its own. */
  stop(): void {
    this.#worker.terminate();
    removeUnfinished(this.task.file);
    this.#done.reject(new ThreadFailed('The backup was stopped.', []));
  }
}
