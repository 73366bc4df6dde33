import { ThreadFailed, type ThreadFailure } from '../../src/problems/causes.ts';
import { workerScript } from '../../src/project-root.ts';
import type { BackupTask } from './backup-worker.ts';
import { removeUnfinished } from './write-backup.ts';

/** Writes a backup in a thread, beside the event loop and its writes. */
export class BackupThread {
  readonly #worker = new Worker(workerScript('db/sqlite/backup-worker.ts'));
  readonly #done = Promise.withResolvers<void>();

  constructor(private readonly task: BackupTask) {
    const { resolve, reject } = this.#done;
    this.#worker.onmessage = ({ data }: MessageEvent<'done' | ThreadFailure>) => {
      if (data === 'done') resolve();
      else reject(new ThreadFailed(data.failed.message, data.failed.causes));
    };
    this.#worker.onerror = (event) => reject(new ThreadFailed(event.message, []));
    // The end of the process does not wait for it.
    this.#worker.unref();
    this.#worker.postMessage(task);
  }

  /** Resolves when the backup is on disk under its name. Rejects with `ThreadFailed` when there is none. */
  async written(): Promise<void> {
    try {
      await this.#done.promise;
    } finally {
      this.#worker.terminate();
    }
  }

  /** Gives the backup up, and removes what there is of it. */
  stop(): void {
    this.#worker.terminate();
    removeUnfinished(this.task.file);
    this.#done.reject(new ThreadFailed('The backup was stopped.', []));
  }
}
