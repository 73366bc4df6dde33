import { SQLiteError } from 'bun:sqlite';
import { type Db, type NotPromise, transact } from './connection.ts';

interface Job {
  readonly work: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** SQLite's answers about the statement itself; all its other errors are about the file, the disk or the memory. */
const STATEMENT_ERRORS = /^SQLITE_(CONSTRAINT|MISMATCH|RANGE|TOOBIG|ERROR)/;

/** Whether the error says that the database could not be written (full, locked, broken), whatever was to be written. */
export function isStorageFailure(error: unknown): boolean {
  return error instanceof SQLiteError && !STATEMENT_ERRORS.test(error.code ?? '');
}

/**
 * Makes one durable commit of all the writes of an event-loop turn, so that the cost of reaching the disk is shared.
 * The writes run in the order in which they were asked for.
 */
export class GroupCommit {
  #jobs: Job[] = [];

  constructor(readonly db: Db) {}

  /**
   * Runs synchronous `work` in the turn's transaction. Resolves with its result once that is on disk. Work that throws
   * is rejected with what it threw and leaves nothing behind; the rest of the batch is then run again without it, so
   * `work` must have no effect outside of the database. When the database cannot be written, nothing of the batch is,
   * and every caller in it gets the error.
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
    const batch = this.#jobs;
    this.#jobs = [];
    while (batch.length > 0) {
      let started = 0;
      let worked = false;
      try {
        transact(this.db, () => {
          for (const job of batch) {
            started += 1;
            job.work();
          }
          worked = true;
        });
        for (const job of batch) job.resolve();
        return;
      } catch (error) {
        if (started === 0 || worked || isStorageFailure(error)) {
          for (const job of batch) job.reject(error);
          return;
        }
        const [thrower] = batch.splice(started - 1, 1);
        thrower?.reject(error);
      }
    }
  }
}
