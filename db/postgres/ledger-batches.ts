import type { ReservedSQL, SQL } from 'bun';
import { isConflict, isLockTimeout } from './errors.ts';
import { isStatementError } from './failures.ts';
import { findLocked } from './ledger-statements.ts';
import { type Written, writeLedger } from './ledger-transaction.ts';
import { type AskedWrite, type LedgerWrite, requireHonest } from './ledger-writes.ts';
import type { NodeLease } from './node-lease.ts';
import { BY_INDEX_ONLY, Session } from './session.ts';

/** The longest wait of a write for the database, before its caller gets the error. */
export const DEADLINE_MS = 5_000;
/** The largest number of holds that wait for the database. Each keeps its request in memory. */
const WAITING_MAX = 1_024;
/** The longest wait of a batch for an organization's row. Later writes wait with it. */
const LOCK_WAIT_MS = 500;
/** The longest wait of one organization's writes for its row, if no other writes wait behind them. */
const LONGEST_LOCK_WAIT_MS = 3_000;
/** The largest number of writes in one transaction. */
const BATCH_MAX = 256;
/** The longest transaction. Then its connection is closed. */
const TRANSACTION_MS = 5_000;
const FIRST_RETRY_MS = 5;
const LONGEST_RETRY_MS = 500;
const CONFLICT_RETRY_MS_MAX = 20;
/** The interval of the checks for writes past their deadline. */
const SWEEP_MS = 250;

/** Settings of a batch's session. They bound waits for locks, and the time that a stopped node keeps its locks. */
const SESSION_SETTINGS = [
  `SET lock_timeout = ${LOCK_WAIT_MS}`,
  "SET statement_timeout = '4s'",
  "SET idle_in_transaction_session_timeout = '4s'",
  // All rows are found by an index. A session keeps its plans, also those for foreign keys. A plan made for a small
  // table would keep scanning the whole table.
  ...BY_INDEX_ONLY,
];

/** The reasons for a write that was not made in time. */
const REASONS = {
  failed: 'a connection to it or a transaction failed',
  locked: "the organization's row is locked",
  overloaded: 'the writes before this one take too long',
} as const;

/** The database could not be written in time. The message is one of `REASONS`. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}

/** Limits of a node's batches, and their metric. */
export interface LedgerBatchOptions {
  /** The longest wait of a write for the database, before its caller gets an error. */
  readonly deadline_ms?: number;
  /** The largest number of holds that wait for the database. More are refused at once. */
  readonly waiting_max?: number;
  /** The longest transaction. Then its connection is closed. */
  readonly transaction_ms?: number;
  /** Called after every commit with its duration, including the disk, and its number of writes. */
  readonly onCommit?: ((duration_ms: number, writes: number) => void) | undefined;
}

interface Job extends AskedWrite {
  readonly organization_id: string;
  is_doubtful: boolean;
  is_abandoned: boolean;
  readonly expires_ms: number;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Groups the writes of a node: writes that arrive during a transaction form the next one. So they share its messages
 * and its disk flush, and two transactions of a node never lock the same rows.
 *
 * A transaction that the database rolled back (a conflict, a broken connection) is tried again until its writes'
 * deadline. If its outcome is unknown, its writes are doubtful. The next transaction then waits for the locks of the
 * one before, reads the stored rows, and writes what is missing. A doubtful charge has no deadline, so that no client
 * gets an error and is charged.
 *
 * If another transaction keeps an organization's row locked, the organization is set aside. Its writes wait for the row
 * on another connection, and the other writes continue.
 *
 * Nothing is written before the node's lease is renewed, because a newer version may have updated the database.
 */
export class LedgerBatches {
  readonly #session: Session;
  /** The session for the organizations that are set aside. */
  readonly #aside_session: Session;
  readonly #node: NodeLease;
  readonly #options: LedgerBatchOptions;
  readonly #deadline_ms: number;
  #queue: Job[] = [];
  #working: Promise<void> | undefined;
  /** The organizations that are set aside, the longest wait first. */
  readonly #aside = new Set<string>();
  #working_aside: Promise<void> | undefined;
  /** The error because of which the database cannot be written; null while it can. */
  #last_failure: { readonly error: unknown } | null = null;
  #retry_ms = FIRST_RETRY_MS;
  #closes_ms = Number.POSITIVE_INFINITY;
  #unknown_holds = 0;
  /** The time of the last commit, or of the beginning of the work. */
  #progress_ms = 0;

  constructor(client: SQL, node: NodeLease, options: LedgerBatchOptions = {}) {
    this.#session = new Session(client, SESSION_SETTINGS);
    this.#aside_session = new Session(client, SESSION_SETTINGS);
    this.#node = node;
    this.#options = options;
    this.#deadline_ms = options.deadline_ms ?? DEADLINE_MS;
  }

  /**
   * Resolves when the write is durable. Rejects when nothing was written: with `RangeError` for an invalid amount, and
   * with PostgreSQL's error for a refused write. Rejects with `LedgerUnavailable` if the database could not be written
   * in time.
   */
  run(write: LedgerWrite): Promise<Written> {
    return new Promise((resolve, reject) => {
      requireHonest(write);
      const { organization_id } = write.kind === 'hold' ? write.request : write.hold;
      const is_waiting = this.#last_failure !== null || this.#aside.has(organization_id);
      if (write.kind === 'hold' && is_waiting && this.#queue.length >= this.#waitingMax()) {
        throw this.#unavailable('locked');
      }
      const expires_ms = performance.now() + this.#deadline_ms;
      const asked = { write, is_doubtful: false, is_abandoned: false };
      this.#queue.push({ ...asked, organization_id, expires_ms, resolve, reject });
      this.#start();
    });
  }

  /** The number of holds whose outcome was unknown at the close. */
  get unknown_holds(): number {
    return this.#unknown_holds;
  }

  /** Ends all waits after the deadline, also those of doubtful writes. */
  endSoon(): void {
    this.#closes_ms = Math.min(this.#closes_ms, performance.now() + this.#deadline_ms);
  }

  /** Waits for all writes, and closes the sessions. */
  async close(): Promise<void> {
    this.endSoon();
    while (this.#working !== undefined || this.#working_aside !== undefined)
      await Promise.all([this.#working, this.#working_aside]);
    await this.#session.drop();
  }

  #start(): void {
    if (this.#queue.some((job) => !this.#isAside(job))) this.#working ??= this.#writeQueue();
    if (this.#aside.size > 0) this.#working_aside ??= this.#writeAside();
  }

  async #writeQueue(): Promise<void> {
    this.#progress_ms = performance.now();
    const sweep = this.#sweep();
    // All writes of this turn of the event loop belong to the first batch.
    await nextTurn();
    while (this.#queue.some((job) => !this.#isAside(job))) {
      const can_write = await this.#canWrite(this.#session);
      const undone = can_write
        ? await this.#write(
            this.#session,
            this.#take((job) => !this.#isAside(job)),
          )
        : null;
      this.#queue = [...(undone ?? []), ...this.#queue];
      this.#start();
      if (undone?.every((job) => this.#isAside(job))) {
        // A caller that was just answered may add a write to this batch.
        await nextTurn();
        continue;
      }
      this.#expire();
      await Bun.sleep(this.#retry_ms);
      this.#retry_ms = Math.min(2 * this.#retry_ms, LONGEST_RETRY_MS);
    }
    clearInterval(sweep);
    this.#working = undefined;
  }

  /** Writes for the organizations that are set aside, one at a time, until none is left. */
  async #writeAside(): Promise<void> {
    const sweep = this.#sweep();
    let retry_ms = FIRST_RETRY_MS;
    while (await this.#isAnyAside()) {
      const [organization_id = ''] = this.#aside;
      const can_write = await this.#canWrite(this.#aside_session);
      const batch = can_write ? this.#take((job) => job.organization_id === organization_id) : [];
      const undone = await this.#write(this.#aside_session, batch, this.#lockWait(batch));
      const is_written = can_write && undone.length === 0;
      this.#queue = [...undone, ...this.#queue];
      this.#aside.delete(organization_id);
      if (!is_written) this.#aside.add(organization_id);
      this.#start();
      this.#expire();
      await Bun.sleep(retry_ms);
      retry_ms = is_written ? FIRST_RETRY_MS : Math.min(2 * retry_ms, LONGEST_RETRY_MS);
    }
    clearInterval(sweep);
    await this.#aside_session.drop();
    this.#working_aside = undefined;
    this.#start();
  }

  /** Resolves with true if an organization stays aside: its row is locked, and writes wait for it. */
  async #isAnyAside(): Promise<boolean> {
    const asked = new Set(this.#queue.map(({ organization_id }) => organization_id));
    for (const id of this.#aside) if (!asked.has(id)) this.#aside.delete(id);
    // For a single organization, the write itself finds the lock.
    if (this.#aside.size > 1) {
      const locked = new Set(
        await this.#findLocked(this.#aside_session, [...this.#aside]).catch(() => this.#aside),
      );
      for (const id of this.#aside) if (!locked.has(id)) this.#aside.delete(id);
      this.#start();
    }
    return this.#aside.size > 0;
  }

  /** Returns the longest wait for the lock of a batch that is set aside: until its next deadline at most. */
  #lockWait(batch: readonly Job[]): number {
    const now_ms = performance.now();
    const longest_ms = this.#aside.size > 1 ? LOCK_WAIT_MS : LONGEST_LOCK_WAIT_MS;
    const deadlines = batch.map(({ expires_ms }) => expires_ms).filter((expires_ms) => expires_ms > now_ms);
    return Math.max(
      1,
      Math.ceil(Math.min(longest_ms, ...[...deadlines, this.#closes_ms].map((at_ms) => at_ms - now_ms))),
    );
  }

  #isAside({ organization_id }: Job): boolean {
    return this.#aside.has(organization_id);
  }

  /** Removes the first wanted jobs from the queue, at most one batch. */
  #take(isWanted: (job: Job) => boolean): Job[] {
    const taken: Job[] = [];
    this.#queue = this.#queue.filter((job) => {
      if (taken.length === BATCH_MAX || !isWanted(job)) return true;
      taken.push(job);
      return false;
    });
    return taken;
  }

  #sweep(): ReturnType<typeof setInterval> {
    const sweep = setInterval(() => this.#expire(), SWEEP_MS);
    sweep.unref();
    return sweep;
  }

  /** Resolves with true if the lease is renewed and the session is connected. Waiting writes stay in the queue. */
  async #canWrite(session: Session): Promise<boolean> {
    try {
      await this.#node.requireRenewed();
      await this.#bounded(session, () => Promise.resolve());
      return true;
    } catch (error) {
      this.#last_failure = { error };
      return false;
    }
  }

  /**
   * Writes a batch and answers its callers. Resolves with the jobs to try again. `lock_wait_ms` bounds the wait for
   * rows.
   */
  async #write(session: Session, batch: Job[], lock_wait_ms?: number): Promise<Job[]> {
    if (batch.length === 0) return [];
    for (;;) {
      const started_ms = performance.now();
      const result = await this.#try(session, batch, lock_wait_ms);
      if (result.ok) {
        this.#last_failure = null;
        this.#progress_ms = performance.now();
        this.#retry_ms = FIRST_RETRY_MS;
        this.#options.onCommit?.(performance.now() - started_ms, batch.length);
        for (const [index, written] of result.written.entries()) batch[index]?.resolve(written);
        return [];
      }
      const { error } = result;
      if (isConflict(error) && batch.every((job) => performance.now() < job.expires_ms)) {
        await Bun.sleep(Math.random() * CONFLICT_RETRY_MS_MAX);
        continue;
      }
      if (isStatementError(error)) return await this.#singleOut(session, batch, error);
      if (isLockTimeout(error)) return await this.#setAside(session, batch, error);
      if (result.is_doubtful) for (const job of batch) job.is_doubtful = true;
      this.#last_failure = { error };
      await session.drop();
      return batch;
    }
  }

  async #try(session: Session, batch: readonly Job[], lock_wait_ms: number | undefined) {
    try {
      return await this.#bounded(session, async (connection) => {
        if (lock_wait_ms !== undefined) await connection.unsafe(`SET lock_timeout = ${lock_wait_ms}`);
        return await writeLedger(connection, batch, this.#node.id);
      });
    } catch (error) {
      return { ok: false, error, is_doubtful: false } as const;
    }
  }

  /** Runs work on the session's connection. Closes the connection when the work takes too long. */
  async #bounded<Result>(
    session: Session,
    work: (connection: ReservedSQL) => Promise<Result>,
  ): Promise<Result> {
    const late = setTimeout(() => void session.drop(), this.#options.transaction_ms ?? TRANSACTION_MS);
    try {
      return await work(await session.connect());
    } finally {
      clearTimeout(late);
    }
  }

  #findLocked(session: Session, organization_ids: readonly string[]): Promise<string[]> {
    return this.#bounded(session, (connection) => findLocked(connection, organization_ids));
  }

  /**
   * Sets aside the organizations whose rows are locked, and writes for the others. Resolves with the jobs to try again
   * that are not in the queue yet.
   */
  async #setAside(session: Session, batch: Job[], error: unknown): Promise<Job[]> {
    const organizations = [...new Set(batch.map(({ organization_id }) => organization_id))];
    const locked =
      organizations.length === 1
        ? organizations
        : await this.#findLocked(session, organizations).catch(async () => {
            await session.drop();
            return [];
          });
    if (locked.length === 0) {
      // The rows are free by now, or the lock was another, such as that of a table.
      this.#last_failure = { error };
      return batch;
    }
    for (const id of locked) this.#aside.add(id);
    // The database answers, so a later refusal is due to the lock and not to the earlier failure.
    this.#last_failure = null;
    if (organizations.length === 1) return batch;
    this.#queue = [...batch.filter((job) => this.#isAside(job)), ...this.#queue];
    this.#start();
    return await this.#write(
      session,
      batch.filter((job) => !this.#isAside(job)),
    );
  }

  /** Finds the write that PostgreSQL refuses by halving the batch. The other writes are made. */
  async #singleOut(session: Session, batch: Job[], error: unknown): Promise<Job[]> {
    const [only] = batch;
    if (batch.length === 1) {
      only?.reject(error);
      return [];
    }
    const middle = batch.length >> 1;
    const undone = await this.#write(session, batch.slice(0, middle));
    return [...undone, ...(await this.#write(session, batch.slice(middle)))];
  }

  /**
   * Rejects queued writes past their deadline, unless they wait only for earlier writes and not for a lock. Doubtful
   * writes stay until they are looked up.
   */
  #expire(): void {
    const now_ms = performance.now();
    const is_moving = now_ms - this.#progress_ms < this.#deadline_ms && now_ms < this.#closes_ms;
    if (is_moving && this.#aside.size === 0) return;
    this.#queue = this.#queue.filter((job) => {
      if (now_ms < job.expires_ms || (is_moving && !this.#isAside(job))) return true;
      const error = this.#unavailable(this.#isAside(job) ? 'locked' : 'overloaded');
      if (!job.is_doubtful || now_ms >= this.#closes_ms) {
        if (job.is_doubtful && job.write.kind === 'hold') this.#unknown_holds += 1;
        job.reject(error);
        return false;
      }
      if (job.write.kind === 'hold') {
        job.is_abandoned = true;
        job.reject(error);
      }
      return true;
    });
  }

  /** Returns the callers' error: the database's error if it has one, or the reason. */
  #unavailable(reason: keyof typeof REASONS): LedgerUnavailable {
    return this.#last_failure === null
      ? unavailable(reason)
      : unavailable('failed', { cause: this.#last_failure.error });
  }

  #waitingMax(): number {
    return this.#options.waiting_max ?? WAITING_MAX;
  }
}

function unavailable(reason: keyof typeof REASONS, options?: ErrorOptions): LedgerUnavailable {
  return new LedgerUnavailable(`the database could not be written in time: ${REASONS[reason]}`, options);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
