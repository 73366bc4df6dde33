import { AsyncLocalStorage } from 'node:async_hooks';
import { sql } from 'drizzle-orm';
import type { PgTransactionConfig } from 'drizzle-orm/pg-core';
import { NestedTransaction } from '../../src/store.ts';
import type { Executor } from './connection.ts';
import { isConflict, isConnectionBroken } from './errors.ts';
import { STORE_LOCK } from './locks.ts';
import { ONE_STATE } from './one-state.ts';

/** What waits keeps its request in memory, and that may be a megabyte. */
const WAITING_MAX = 1_024;
/** Behind a database that does not answer, everybody would wait as long as all before them together. */
const WAIT_MAX_MS = 10_000;
const ATTEMPTS_MAX = 5;
/** Before each further attempt up to so long, twice the time before. */
const FIRST_DELAY_MS = 4;
/** Whoever waits for the transaction has given up long before. */
const RETRY_UNTIL_MS = 15_000;

/**
 * Takes the lock of all nodes, in one message. A wait for it is bounded by `lock_timeout` alone, which is longer than a
 * paused node can keep it. Then the session's own bound of a statement is back.
 */
const TAKE_TURN = sql.raw(`SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(${STORE_LOCK});
  SET LOCAL statement_timeout TO DEFAULT`);

/** Too many transactions wait for their turn, or one has waited too long. */
export class WriteQueueFull extends Error {
  override readonly name = 'WriteQueueFull';
}

export interface TransactionOptions {
  /** A number from 0 to 1 that spreads the attempts of nodes which got in each other's way. */
  readonly random?: () => number;
  /** The kind of transaction; by default one that writes, at the session's isolation. */
  readonly config?: PgTransactionConfig;
}

/**
 * Runs `work` in one transaction. Resolves with its result once that is on the server's disk; rolls all of it back when
 * `work` rejects. The work must have no effect elsewhere, because it may be done again, a few times. That is when the
 * server undid it in favour of another transaction, or the connection broke before COMMIT was sent.
 *
 * Rejects with what `work` rejects with and with what the client throws. When the connection breaks while COMMIT is
 * under way, the outcome is unknown: nothing is done again.
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
  /** How many may wait for their turn in this process. */
  readonly waiting_max?: number;
  /** How long each of them may wait for its turn. */
  readonly wait_max_ms?: number;
  /** Is waited for before each transaction that writes, which rejects as it does. */
  readonly beforeWrite?: () => Promise<void>;
}

/**
 * Runs transactions one at a time, over all processes that share the database: what one of them checks stays true until
 * it has written. Within this process they wait for each other here, so that they keep no more than one connection.
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
   * `WriteQueueFull` when too many wait or its turn does not come, and as `beforeWrite` does.
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
    const turn = this.#last.then(async () => {
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
    this.#last = turn.then(done, done);
    return turn;
  }

  /**
   * Runs `work` in one transaction that only reads, and sees one state of the database. It waits for no turn. Rejects
   * with `NestedTransaction` inside of another one.
   */
  snapshot<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    if (this.#inside.getStore() === true) {
      return Promise.reject(new NestedTransaction('a snapshot cannot begin inside a transaction'));
    }
    return this.#inside.run(true, () => transact(this.#db, work, { ...this.#options, config: ONE_STATE }));
  }

  async #locked<T>(executor: Executor, work: (executor: Executor) => Promise<T>): Promise<T> {
    await executor.execute(TAKE_TURN);
    return await work(executor);
  }
}
