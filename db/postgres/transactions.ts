import { AsyncLocalStorage } from 'node:async_hooks';
import { sql } from 'drizzle-orm';
import type { PgTransactionConfig } from 'drizzle-orm/pg-core';
import { NestedTransaction } from '../../src/store/store.ts';
import type { Executor } from './connection.ts';
import { isConflict, isConnectionBroken } from './errors.ts';
import { STORE_LOCK } from './locks.ts';
import { ONE_STATE } from './one-state.ts';

/** A waiting transaction keeps its request in memory, which may be a megabyte. */
const WAITING_MAX = 1_024;
/** Without this limit, waits behind a database that does not answer would add up. */
const WAIT_MAX_MS = 10_000;
const ATTEMPTS_MAX = 5;
/** The longest delay before the second attempt. It doubles with each attempt. */
const FIRST_DELAY_MS = 4;
/** The caller has given up long before. */
const RETRY_UNTIL_MS = 15_000;

/**
 * Takes the lock of all nodes, in one message. Only `lock_timeout` bounds the wait, which is longer than a paused node
 * can keep the lock. Then the session's own statement timeout holds again.
 */
const TAKE_STORE_LOCK = sql.raw(`SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(${STORE_LOCK});
  SET LOCAL statement_timeout TO DEFAULT`);

/** The queue of transactions is full, or one has waited too long. */
export class WriteQueueFull extends Error {
  override readonly name = 'WriteQueueFull';
}

export interface TransactionOptions {
  /** Returns a number from 0 to 1, which spreads the attempts of nodes after a conflict. */
  readonly random?: () => number;
  /** The kind of transaction; by default it writes, at the session's isolation level. */
  readonly config?: PgTransactionConfig;
}

/**
 * Runs `work` in one transaction. Resolves with its result once that is on the server's disk; rolls all of it back when
 * `work` rejects. The work must have no effect elsewhere before its last step, because it may run a few times. It runs
 * again if the server rolled it back after a conflict, or the connection broke before COMMIT was sent.
 *
 * Rejects with the errors of `work` and of the client. If the connection breaks during COMMIT, the outcome is unknown
 * and the work is not run again.
 */
export async function transact<T>(
  db: Executor,
  work: (executor: Executor) => Promise<T>,
  { random = Math.random, config }: TransactionOptions = {},
): Promise<T> {
  const retry_until_ms = performance.now() + RETRY_UNTIL_MS;
  for (let attempt = 1; ; attempt += 1) {
    let is_committing = false;
    try {
      return await db.transaction(async (executor) => {
        const result = await work(executor);
        is_committing = true;
        return result;
      }, config);
    } catch (error) {
      const is_undone = !is_committing && (isConflict(error) || isConnectionBroken(error));
      if (!is_undone || attempt === ATTEMPTS_MAX || performance.now() > retry_until_ms) throw error;
      await Bun.sleep(random() * FIRST_DELAY_MS * 2 ** attempt);
    }
  }
}

export interface TransactionsOptions extends TransactionOptions {
  /** The largest number of waiting transactions in this process. */
  readonly waiting_max?: number;
  /** The longest wait of a transaction. */
  readonly wait_max_ms?: number;
  /** Each transaction that writes waits for this first, and rejects as it does. */
  readonly beforeWrite?: () => Promise<void>;
}

/**
 * Runs transactions one at a time, over all processes that share the database. So the checks of a transaction stay true
 * until it has written. Transactions of this process wait here, so that they use one connection only.
 */
export class Transactions {
  readonly #db: Executor;
  readonly #options: TransactionsOptions;
  readonly #inside = new AsyncLocalStorage<true>();
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(db: Executor, options: TransactionsOptions = {}) {
    this.#db = db;
    this.#options = options;
  }

  /**
   * Runs `work` in one transaction, as `transact` does. Rejects with `NestedTransaction` inside of another one, with
   * `WriteQueueFull` if the queue is full or the wait too long, and as `beforeWrite` does.
   */
  run<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    if (this.#inside.getStore() === true) {
      return Promise.reject(new NestedTransaction('a transaction cannot begin inside another'));
    }
    if (this.#waiting >= (this.#options.waiting_max ?? WAITING_MAX)) {
      return Promise.reject(new WriteQueueFull('too many transactions wait for the database'));
    }
    this.#waiting += 1;
    const expires_ms = performance.now() + (this.#options.wait_max_ms ?? WAIT_MAX_MS);
    const run = this.#last.then(async () => {
      if (performance.now() > expires_ms)
        throw new WriteQueueFull('the transactions before this one took too long');
      await this.#options.beforeWrite?.();
      return await this.#inside.run(true, () =>
        transact(this.#db, (executor) => this.#locked(executor, work), this.#options),
      );
    });
    const done = () => {
      this.#waiting -= 1;
    };
    this.#last = run.then(done, done);
    return run;
  }

  /**
   * Runs `work` in one read-only transaction, which sees one snapshot of the database. It does not queue. Rejects with
   * `NestedTransaction` inside another one.
   */
  snapshot<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    if (this.#inside.getStore() === true) {
      return Promise.reject(new NestedTransaction('a snapshot cannot begin inside a transaction'));
    }
    return this.#inside.run(true, () => transact(this.#db, work, { ...this.#options, config: ONE_STATE }));
  }

  async #locked<T>(executor: Executor, work: (executor: Executor) => Promise<T>): Promise<T> {
    await executor.execute(TAKE_STORE_LOCK);
    return await work(executor);
  }
}
