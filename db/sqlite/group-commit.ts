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

/** SQLite's errors about the statement. All others are about the file, the disk or the memory. */
const STATEMENT_ERRORS = /^SQLITE_(CONSTRAINT|MISMATCH|RANGE|TOOBIG|ERROR)/;

/** Returns true if the database could not be written (full, locked, broken), whatever the data. */
export function isStorageFailure(error: unknown): boolean {
  return error instanceof SQLiteError && !STATEMENT_ERRORS.test(error.code ?? '');
}

/** Returns true if the disk is full, or a quota or a limit of the process is reached. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_(FULL|IOERR_WRITE)$/.test(error.code ?? '');
}

/** Too many writes wait for another process's write lock. */
export class WriteQueueFull extends Error {
  override readonly name = 'WriteQueueFull';
}

/** Limits of the wait for another process's lock, and a metric. */
export interface GroupCommitOptions {
  /** The longest wait of a write before its caller gets `SQLITE_BUSY`. */
  readonly lock_deadline_ms?: number;
  /** The largest number of waiting writes. More are refused at once. */
  readonly waiting_max?: number;
  /** Called after every commit with its duration, including the disk, and its number of writes. */
  readonly onCommit?: (duration_ms: number, writes: number) => void;
}

/**
 * Makes one durable commit of all writes of an event-loop turn, so that they share one disk flush. The writes run in
 * the order of their calls.
 *
 * While another process has the write lock, the writes wait without blocking the event loop. The batch is tried again
 * after a short, growing delay, and later writes join it. Writes wait in the same way for an open transaction of
 * `Transactions`. The connection must have no busy timeout.
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
   * Runs synchronous `work` in the turn's transaction. Resolves with its result once that is on disk. Rejects with the
   * error that `work` throws, and writes nothing of it. The rest of the batch then runs again, so `work` must have no
   * effect outside the database. If the database cannot be written, all callers of the batch get the error. Rejects
   * with `WriteQueueFull` if too many writes wait for a lock.
   */
  run<T>(work: () => NotPromise<T>): Promise<T> {
    if (this.#lock.isWaiting && this.#jobs.length >= this.#waiting_max) {
      return Promise.reject(new WriteQueueFull('too many writes wait for the database'));
    }
    return this.runEvenIfFull(work);
  }

  /**
   * Does the same without the limit of waiting writes, for writes that end earlier work. The earlier work bounds their
   * number, and a refusal would waste it.
   */
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
   * Commits the waiting writes now instead of at the end of the turn. Writes that meet a lock or an open transaction
   * keep waiting.
   */
  flush(): void {
    this.#lock.stop();
    if (this.#jobs.length === 0) return;
    if (this.#isTransactionOpen()) {
      // The open transaction ends within this turn of the event loop.
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

  /** Returns true if a transaction of `Transactions` is open. A closed database has none, and its batch fails. */
  #isTransactionOpen(): boolean {
    try {
      return this.db.$client.inTransaction;
    } catch {
      return false;
    }
  }

  /** Keeps the batch for another try, without jobs past their deadline. No job came since `flush` took the batch. */
  #wait(batch: Job[], error: unknown, tried_ms: number): void {
    this.#jobs = this.#lock.keep(batch, error, tried_ms);
    if (this.#jobs.length === 0) this.#lock.reset();
    else this.#lock.retry(() => this.flush());
  }
}
