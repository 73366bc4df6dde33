import { SQLiteError } from 'bun:sqlite';
import { type Db, type NotPromise, transact } from './connection.ts';
import {
  isLockedElsewhere,
  LOCK_DEADLINE_MS,
  LockWait,
  WAITING_MAX,
  type WaitingWrite,
} from './lock-wait.ts';

interface Job extends WaitingWrite {
  readonly work: () => void;
  readonly resolve: () => void;
}

/** SQLite's answers about the statement itself; all its other errors are about the file, the disk or the memory. */
const STATEMENT_ERRORS = /^SQLITE_(CONSTRAINT|MISMATCH|RANGE|TOOBIG|ERROR)/;

/** Whether the error says that the database could not be written (full, locked, broken), whatever was to be written. */
export function isStorageFailure(error: unknown): boolean {
  return error instanceof SQLiteError && !STATEMENT_ERRORS.test(error.code ?? '');
}

/** Whether the disk took no more: it is full, or a quota or a limit of the process is reached. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_(FULL|IOERR_WRITE)$/.test(error.code ?? '');
}

/** Too many writes wait for another process to give the write lock back. */
export class WriteQueueFull extends Error {
  override readonly name = 'WriteQueueFull';
}

/** How writes wait for a lock that another process has. */
export interface GroupCommitOptions {
  /** How long a write waits before its caller gets SQLite's `SQLITE_BUSY`. */
  readonly lock_deadline_ms?: number;
  /** How many writes may wait; more of them are refused at once. */
  readonly waiting_max?: number;
  /** Is told of every commit: how long it took, to the disk, and how many writes were in it. */
  readonly onCommit?: (duration_ms: number, writes: number) => void;
}

/**
 * Makes one durable commit of all the writes of an event-loop turn, so that the cost of reaching the disk is shared.
 * The writes run in the order in which they were asked for.
 *
 * While another process has the write lock, the writes wait without blocking the event loop. The batch is tried again
 * after a short, growing delay, and writes that are asked for meanwhile join it. They wait in the same way for an open
 * transaction of `Transactions`. The connection must have no busy timeout for that.
 */
export class GroupCommit {
  #jobs: Job[] = [];
  readonly #lock: LockWait;
  readonly #waiting_max: number;
  readonly #onCommit: GroupCommitOptions['onCommit'];

  constructor(
    readonly db: Db,
    { lock_deadline_ms = LOCK_DEADLINE_MS, waiting_max = WAITING_MAX, onCommit }: GroupCommitOptions = {},
  ) {
    this.#lock = new LockWait(lock_deadline_ms);
    this.#waiting_max = waiting_max;
    this.#onCommit = onCommit;
  }

  /**
   * Runs synchronous `work` in the turn's transaction. Resolves with its result once that is on disk. Work that throws
   * is rejected with its error and leaves nothing behind. The rest of the batch is then run again without it, so `work`
   * must have no effect outside of the database. When the database cannot be written, nothing of the batch is, and
   * every caller in it gets the error. Rejects with `WriteQueueFull` when too many writes wait for a lock.
   */
  run<T>(work: () => NotPromise<T>): Promise<T> {
    if (this.#lock.isWaiting && this.#jobs.length >= this.#waiting_max) {
      return Promise.reject(new WriteQueueFull('too many writes wait for the database'));
    }
    return this.runEvenIfFull(work);
  }

  /** The same for what ends earlier work: it is bounded by that, and refusing it would waste what was done. */
  runEvenIfFull<T>(work: () => NotPromise<T>): Promise<T> {
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

  /**
   * Commits what is waiting now instead of at the end of the turn. What meets a lock or an open transaction goes on
   * waiting for it.
   */
  flush(): void {
    this.#lock.stop();
    if (this.#jobs.length === 0) return;
    if (this.#isTransactionOpen()) {
      // It ends within this turn of the event loop.
      this.#lock.retry(() => this.flush());
      return;
    }
    const batch = this.#jobs;
    this.#jobs = [];
    while (batch.length > 0) {
      const tried_ms = performance.now();
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
        this.#lock.reset();
        this.#onCommit?.(performance.now() - tried_ms, batch.length);
        for (const job of batch) job.resolve();
        return;
      } catch (error) {
        if (started === 0 && isLockedElsewhere(error)) {
          this.#wait(batch, error, tried_ms);
          return;
        }
        if (started === 0 || worked || isStorageFailure(error)) {
          for (const job of batch) job.reject(error);
          return;
        }
        const [thrower] = batch.splice(started - 1, 1);
        thrower?.reject(error);
      }
    }
  }

  /** Whether one of `Transactions` is open. A closed database has none, and fails the batch that is written to it. */
  #isTransactionOpen(): boolean {
    try {
      return this.db.$client.inTransaction;
    } catch {
      return false;
    }
  }

  /** Keeps the batch for another try, without the jobs whose time is over. */
  #wait(batch: Job[], error: unknown, tried_ms: number): void {
    this.#jobs = [...this.#lock.keep(batch, error, tried_ms), ...this.#jobs];
    if (this.#jobs.length === 0) this.#lock.reset();
    else this.#lock.retry(() => this.flush());
  }
}
