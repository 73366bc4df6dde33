import { AsyncLocalStorage } from 'node:async_hooks';
import { NestedTransaction } from '../../src/store/store.ts';
import type { Db } from './connection.ts';
import { type GroupCommitOptions, WriteQueueFull } from './group-commit.ts';
import {
  isLockedElsewhere,
  LOCK_DEADLINE_MS,
  LockWait,
  WAITING_MAX,
  type WaitingWrite,
} from './lock-wait.ts';

/** Access of records to the database, inside one transaction or outside of any. */
export interface Access {
  /** Runs synchronous reads. Outside of a transaction they see committed rows only. */
  read<T>(work: () => T): Promise<T>;
  /** Runs synchronous writes. Outside of a transaction they get their own. */
  write<T>(work: () => T): Promise<T>;
  /** Runs `work` in the open transaction, or outside of any in its own, as `Transactions.run` does. */
  transaction<T>(work: (access: Access) => Promise<T>): Promise<T>;
}

/** The work of a transaction awaited something other than its records. It was rolled back. */
export class TransactionStalled extends Error {
  override readonly name = 'TransactionStalled';
}

/** The records of a transaction were used after its end. */
export class TransactionEnded extends Error {
  override readonly name = 'TransactionEnded';
}

/** A snapshot was asked to write. */
export class SnapshotCannotWrite extends Error {
  override readonly name = 'SnapshotCannotWrite';
}

interface Job extends WaitingWrite {
  /** Resolves with the function that reports the result to the caller after the commit. */
  readonly work: (access: Access) => Promise<() => void>;
}

/** Returns a job for the work, and the promise of its result. */
function jobOf<T>(work: (access: Access) => Promise<T>): { readonly job: Job; readonly result: Promise<T> } {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const job: Job = {
    work: async (access) => {
      const result = await work(access);
      return () => resolve(result);
    },
    reject,
  };
  return { job, result: promise };
}

/**
 * Runs asynchronous transactions on a connection, one at a time, in the order of their calls.
 *
 * The connection is shared, so nothing else may write while a transaction is open. The promises of its records resolve
 * at once, so its work ends before the event loop turns. If the work awaits anything else, a `setImmediate` fires first
 * and rolls it back. Reads outside of it and `GroupCommit` wait for its end.
 */
export class Transactions {
  readonly #db: Db;
  readonly #lock: LockWait;
  readonly #waiting_max: number;
  readonly #inside = new AsyncLocalStorage<true>();
  #jobs: Job[] = [];
  #isRunning = false;
  /**
   * Resolves when the open transaction has ended; undefined while none is open. A waiter checks it again afterwards,
   * because another transaction may have begun.
   */
  #open: Promise<void> | undefined;

  constructor(
    db: Db,
    { lock_deadline_ms = LOCK_DEADLINE_MS, waiting_max = WAITING_MAX }: GroupCommitOptions = {},
  ) {
    this.#db = db;
    this.#lock = new LockWait(lock_deadline_ms);
    this.#waiting_max = waiting_max;
  }

  /** Access outside of any transaction. */
  readonly outside: Access = {
    read: (work) => this.#readOutside(work),
    write: (work) => this.run((access) => access.write(work)),
    transaction: (work) => this.run(work),
  };

  /**
   * Runs `work` in one immediate transaction. Resolves with its result once that is on disk. When `work` rejects, all
   * of it is rolled back. While another process has the write lock, the transaction waits beside the event loop.
   *
   * Rejects with the errors of `work` and SQLite, `NestedTransaction`, `TransactionStalled`, and `WriteQueueFull` if
   * too many wait for a lock.
   */
  run<T>(work: (access: Access) => Promise<T>): Promise<T> {
    if (this.#inside.getStore() === true) {
      return Promise.reject(new NestedTransaction('a transaction cannot begin inside another'));
    }
    if (this.#lock.isWaiting && this.#jobs.length >= this.#waiting_max) {
      return Promise.reject(new WriteQueueFull('too many transactions wait for the database'));
    }
    const { job, result } = jobOf(work);
    this.#jobs.push(job);
    if (!this.#isRunning) {
      this.#isRunning = true;
      setImmediate(() => this.#next());
    }
    return result;
  }

  /**
   * Runs `work` in one read-only transaction, which sees one snapshot of the database. It waits for no lock of another
   * process. Rejects with the errors of `work` and SQLite, `NestedTransaction`, `TransactionStalled`, and
   * `SnapshotCannotWrite`.
   */
  async snapshot<T>(work: (access: Access) => Promise<T>): Promise<T> {
    if (this.#inside.getStore() === true) {
      throw new NestedTransaction('a snapshot cannot begin inside a transaction');
    }
    while (this.#open !== undefined) await this.#open;
    const client = this.#db.$client;
    client.run('BEGIN');
    const { job, result } = jobOf(work);
    const [found] = await Promise.all([result, this.#work(job, new OpenSnapshot(client))]);
    return found;
  }

  async #readOutside<T>(work: () => T): Promise<T> {
    if (this.#inside.getStore() === true) {
      throw new NestedTransaction('inside a transaction, read through the records that it gives');
    }
    while (this.#open !== undefined) await this.#open;
    return work();
  }

  /** Runs the first transaction of the queue, then the next. */
  async #next(): Promise<void> {
    this.#lock.stop();
    while (this.#open !== undefined) await this.#open;
    const tried_ms = performance.now();
    try {
      this.#db.$client.run('BEGIN IMMEDIATE');
    } catch (error) {
      if (isLockedElsewhere(error)) this.#jobs = this.#lock.keep(this.#jobs, error, tried_ms);
      else this.#jobs.shift()?.reject(error);
      if (this.#jobs.length > 0) this.#lock.retry(() => this.#next());
      else this.#rest();
      return;
    }
    this.#lock.reset();
    const job = this.#jobs.shift();
    try {
      if (job !== undefined) await this.#work(job, new OpenTransaction(this.#db.$client));
    } finally {
      if (this.#jobs.length > 0) setImmediate(() => this.#next());
      else this.#rest();
    }
  }

  #rest(): void {
    this.#isRunning = false;
    this.#lock.reset();
  }

  /** Runs the work of an open transaction, and ends it. */
  async #work(job: Job, access: OpenTransaction): Promise<void> {
    const client = this.#db.$client;
    const closed = Promise.withResolvers<void>();
    this.#open = closed.promise;
    const stalled = Promise.withResolvers<never>();
    const detection = setImmediate(() =>
      stalled.reject(new TransactionStalled('the work of a transaction may await its records only')),
    );
    try {
      const report = await Promise.race([this.#inside.run(true, () => job.work(access)), stalled.promise]);
      client.run('COMMIT');
      report();
    } catch (error) {
      job.reject(error);
      // SQLite has rolled back already when the disk is full or broken.
      if (client.inTransaction) client.run('ROLLBACK');
    } finally {
      clearImmediate(detection);
      access.end();
      this.#open = undefined;
      closed.resolve();
    }
  }
}

/** Access inside the open transaction, until it ends. */
class OpenTransaction implements Access {
  #hasEnded = false;

  constructor(private readonly client: Db['$client']) {}

  end(): void {
    this.#hasEnded = true;
  }

  read<T>(work: () => T): Promise<T> {
    // Without the check, a write after the end would become its own transaction.
    if (this.#hasEnded || !this.client.inTransaction) {
      return Promise.reject(new TransactionEnded('the transaction of these records has ended'));
    }
    return Promise.try(work);
  }

  write<T>(work: () => T): Promise<T> {
    return this.read(work);
  }

  transaction<T>(work: (access: Access) => Promise<T>): Promise<T> {
    return work(this);
  }
}

/** Access inside an open transaction that only reads. */
class OpenSnapshot extends OpenTransaction {
  override write<T>(): Promise<T> {
    return Promise.reject(new SnapshotCannotWrite('a snapshot was asked to write'));
  }
}
