import { workerScript } from '../../src/files/project-root.ts';
import { ThreadFailed, type ThreadFailure } from '../../src/problems/causes.ts';
import type { HistoryReport, HistoryRuns, HistoryTask } from '../../src/store/history-runs.ts';
import { fileGuard } from './file-watch.ts';
import type { FileTask } from './history-worker.ts';

/** Audits and rolls up the history of a database file, each run in its own thread. */
export class HistoryThread implements HistoryRuns {
  readonly #path: string;
  readonly #requireSameFile: () => void;
  #worker: Worker | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#requireSameFile = fileGuard(path);
  }

  async run(task: HistoryTask): Promise<HistoryReport | null> {
    if (this.#worker !== undefined) return null;
    // The thread opens the path, and would make a new database where the file was removed.
    this.#requireSameFile();
    const { promise, resolve, reject } = Promise.withResolvers<HistoryReport>();
    const worker = new Worker(workerScript('db/sqlite/history-worker.ts'));
    this.#worker = worker;
    // The process may exit before the thread ends.
    worker.unref();
    worker.onmessage = ({ data }: MessageEvent<HistoryReport | ThreadFailure>) => {
      if ('failed' in data) reject(new ThreadFailed(data.failed.message, data.failed.causes));
      else resolve(data);
    };
    worker.onerror = (event) => reject(new ThreadFailed(event.message, []));
    worker.postMessage({ ...task, path: this.#path } satisfies FileTask);
    return await promise.finally(() => {
      worker.terminate();
      this.#worker = undefined;
    });
  }

  stop(): void {
    this.#worker?.postMessage('stop');
  }
}
