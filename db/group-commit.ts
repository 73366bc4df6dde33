import { type Db, type NotPromise, transact } from './connection.ts';

interface Job {
  readonly work: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes one durable commit of all the writes of an event-loop turn, so that the cost of reaching the disk is shared.
 * The writes run in the order in which they were asked for.
 */
export class GroupCommit {
  #jobs: Job[] = [];

  constructor(readonly db: Db) {}

  /**
   * Runs synchronous `work` in the turn's transaction. Resolves with its result once that is on disk. When any work of
   * the batch throws, or the commit fails, nothing of the batch is written and every caller in it gets the error.
   */
  run<T>(work: () => NotPromise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: { readonly value: T } | undefined;
      this.#jobs.push({
        work: () => {
          result = { value: work() };
        },
        resolve: () => {
          if (result !== undefined) resolve(result.value);
        },
        reject,
      });
      if (this.#jobs.length === 1) setImmediate(() => this.flush());
    });
  }

  /** Commits what is waiting now instead of at the end of the turn. */
  flush(): void {
    const jobs = this.#jobs;
    if (jobs.length === 0) return;
    this.#jobs = [];
    try {
      transact(this.db, () => {
        for (const job of jobs) job.work();
      });
    } catch (error) {
      for (const job of jobs) job.reject(error);
      return;
    }
    for (const job of jobs) job.resolve();
  }
}
