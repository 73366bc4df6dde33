import type { Clock } from '../../src/clock.ts';
import type { Books, BooksEvents } from '../../src/ledger/books.ts';
import { HoldNotOpen } from '../../src/ledger/errors.ts';
import type { Hold, HoldRefusal, HoldRequest, HoldResult } from '../../src/ledger/hold.ts';
import type { UsageRow } from '../../src/usage/usage-row.ts';
import { transact } from './connection.ts';
import { type GroupCommit, isStorageFailure } from './group-commit.ts';
import { SqliteLedger } from './sqlite-ledger.ts';
import { UsageWriter } from './usage-writer.ts';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 5_000;

/** A release that could not be written yet, with the usage row that belongs into the same commit. */
interface UnwrittenRelease {
  readonly hold: Hold;
  readonly usage: UsageRow | null;
}

/**
 * The books in a SQLite database: all holds and ends of an event-loop turn are one commit. Every hold ends exactly
 * once, even while the database cannot be written. A charge that cannot be committed becomes a release; a release is
 * tried again in the background until it is written. What is still unwritten when the process ends is released by the
 * next start.
 *
 * One case is beyond it: SQLite could write a commit but not sync it, and the process dies before any later
 * commit. The next start may then find a charge whose client was told 503.
 */
export class SqliteBooks implements Books {
  readonly #ledger: SqliteLedger;
  readonly #usage: UsageWriter;
  /** When each open hold was placed, oldest first but for what overtook in a commit. */
  readonly #open = new Map<number, number>();
  readonly #unwritten = new Map<number, UnwrittenRelease>();
  readonly #inFlight = new Set<Promise<unknown>>();
  #retry_delay_ms = FIRST_RETRY_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** Releases that have waited since the last time that none did. */
  #waited = 0;
  readonly #waiters: (() => void)[] = [];

  /** `process_id` is written with the holds of this process. */
  constructor(
    private readonly commits: GroupCommit,
    private readonly clock: Pick<Clock, 'now_ms'>,
    private readonly process_id: string,
    private readonly events: BooksEvents,
  ) {
    this.#ledger = new SqliteLedger(commits.db);
    this.#usage = new UsageWriter(commits.db);
  }

  async hold(request: HoldRequest): Promise<HoldResult> {
    const result = await this.commits.run(() => this.#ledger.hold(request, this.process_id));
    if (result.held) this.#open.set(result.hold.entry_id, request.at_ms);
    return result;
  }

  refusalOf(request: Omit<HoldRequest, 'request_id'>): Promise<HoldRefusal | null> {
    return Promise.try(() => this.#ledger.refusalOf(request));
  }

  charge(hold: Hold, cost_micros: number, usage: UsageRow, usage_if_not_charged: UsageRow): Promise<void> {
    return this.#track(this.#charge(hold, cost_micros, usage, usage_if_not_charged));
  }

  release(hold: Hold, usage: UsageRow | null): Promise<void> {
    return this.#track(this.#release(hold, usage));
  }

  get open(): { readonly holds: number; readonly oldest_at_ms: number | null } {
    const [oldest_at_ms = null] = this.#open.values();
    return { holds: this.#open.size, oldest_at_ms };
  }

  get unwritten(): number {
    return this.#unwritten.size;
  }

  whenSettled(): Promise<void> {
    if (this.#unwritten.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.commits.flush();
    await Promise.all(this.#inFlight);
    await this.#writeUnwritten();
  }

  /** Releases all open holds: the data directory's lock proves that no other process serves. */
  recover(): Promise<number> {
    return Promise.try(() => transact(this.commits.db, () => this.#ledger.releaseOpenHolds()));
  }

  async #charge(
    hold: Hold,
    cost_micros: number,
    usage: UsageRow,
    usage_if_not_charged: UsageRow,
  ): Promise<void> {
    if (this.#unwritten.has(hold.entry_id)) throw new HoldNotOpen(`hold ${hold.entry_id} is being released`);
    const at_ms = this.clock.now_ms();
    try {
      await this.commits.runEvenIfFull(() => {
        this.#ledger.charge(hold, cost_micros, at_ms);
        this.#usage.record(usage);
      });
      this.#open.delete(hold.entry_id);
    } catch (error) {
      if (error instanceof HoldNotOpen) throw error;
      if (this.#isCharged(hold)) {
        this.#open.delete(hold.entry_id);
        this.events.onProblem('charge', error);
        return;
      }
      if (isStorageFailure(error)) this.#releaseLater(hold, usage_if_not_charged, error);
      else await this.#release(hold, usage_if_not_charged);
      throw error;
    }
  }

  /**
   * Whether a charge whose commit failed is there nevertheless: its entry says so for certain. When not even
   * that can be read, the release that is tried later meets the charge and leaves it.
   */
  #isCharged(hold: Hold): boolean {
    try {
      return this.#ledger.isCharged(hold);
    } catch {
      // Nothing is lost: the charge's caller gets the error of its commit.
      return false;
    }
  }

  async #release(hold: Hold, usage: UsageRow | null): Promise<void> {
    if (this.#unwritten.has(hold.entry_id)) return;
    const failure = await this.#writeRelease(hold, usage);
    if (failure !== null) this.#releaseLater(hold, usage, failure.error);
  }

  /** Null when the hold has its end on disk; else why not. */
  async #writeRelease(hold: Hold, usage: UsageRow | null): Promise<{ readonly error: unknown } | null> {
    try {
      await this.commits.runEvenIfFull(() => {
        this.#ledger.release(hold);
        if (usage !== null) this.#usage.record(usage);
      });
      this.#open.delete(hold.entry_id);
      return null;
    } catch (error) {
      if (error instanceof HoldNotOpen) {
        this.#open.delete(hold.entry_id);
        return null;
      }
      if (isStorageFailure(error) || usage === null) return { error };
      this.events.onProblem('release', error);
      return this.#writeRelease(hold, null);
    }
  }

  #releaseLater(hold: Hold, usage: UsageRow | null, error: unknown): void {
    if (!this.#unwritten.has(hold.entry_id)) {
      this.#unwritten.set(hold.entry_id, { hold, usage });
      this.#waited += 1;
      this.events.onProblem('release', error);
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#closed || this.#timer !== undefined || this.#unwritten.size === 0) return;
    this.#timer = setTimeout(() => this.#retry(), this.#retry_delay_ms);
    this.#timer.unref();
  }

  async #retry(): Promise<void> {
    await this.#writeUnwritten();
    this.#timer = undefined;
    this.#retry_delay_ms =
      this.#unwritten.size === 0 ? FIRST_RETRY_MS : Math.min(2 * this.#retry_delay_ms, LONGEST_RETRY_MS);
    this.#schedule();
  }

  async #writeUnwritten(): Promise<void> {
    const releases = [...this.#unwritten.values()];
    await Promise.all(
      releases.map(async ({ hold, usage }) => {
        if ((await this.#writeRelease(hold, usage)) === null) this.#unwritten.delete(hold.entry_id);
      }),
    );
    if (this.#unwritten.size > 0) return;
    if (this.#waited > 0) this.events.onSettled(this.#waited);
    this.#waited = 0;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  #track(end: Promise<void>): Promise<void> {
    const settled = end.then(nothing, nothing).finally(() => this.#inFlight.delete(settled));
    this.#inFlight.add(settled);
    return end;
  }
}

function nothing(): void {
  // The caller of the end handles how it went.
}
