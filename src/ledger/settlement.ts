import { transact } from '../../db/sqlite/connection.ts';
import { type GroupCommit, isStorageFailure } from '../../db/sqlite/group-commit.ts';
import type { Clock } from '../clock.ts';
import { type Hold, HoldNotOpen, type Ledger } from './ledger.ts';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 5_000;

/** A release that could not be written yet, with what belongs into the same commit. */
interface UnwrittenRelease {
  readonly hold: Hold;
  readonly also: () => void;
}

/** What an operator should know of ends that could not be written as they were asked for. */
export interface SettlementEvents {
  /** An end failed and is mended: a release waits for the next try, or went without its usage row. */
  readonly onProblem: (step: 'charge' | 'release', error: unknown) => void;
  /** Every release that had to wait is written; `holds` is how many those were. */
  readonly onSettled: (holds: number) => void;
}

/**
 * Makes sure that every hold ends exactly once, even while the database cannot be written: a charge that cannot be
 * committed becomes a release, and a release is tried again in the background until it is written. What is still
 * unwritten when the process ends is released by the next start.
 *
 * One case is beyond it: SQLite could write a commit but not sync it, and the process dies before any later
 * commit. The next start may then find a charge whose client was told 503.
 */
export class Settlement {
  readonly #ledger: Ledger;
  readonly #commits: GroupCommit;
  readonly #clock: Clock;
  readonly #events: SettlementEvents;
  readonly #unwritten = new Map<number, UnwrittenRelease>();
  readonly #inFlight = new Set<Promise<unknown>>();
  #retry_delay_ms = FIRST_RETRY_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** Releases that have waited since the last time that none did. */
  #waited = 0;
  readonly #waiters: (() => void)[] = [];

  constructor(ledger: Ledger, commits: GroupCommit, clock: Clock, events: SettlementEvents) {
    this.#ledger = ledger;
    this.#commits = commits;
    this.#clock = clock;
    this.#events = events;
  }

  /**
   * Deducts the cost and runs `also` (the usage row) in the same commit; resolves when that is on disk. When it rejects
   * the client must get an error: the hold is then released, now or later, with `otherwise` in the release's commit.
   */
  charge(hold: Hold, cost_micros: number, also: () => void, otherwise: () => void = nothing): Promise<void> {
    return this.#track(this.#charge(hold, cost_micros, also, otherwise));
  }

  /**
   * Frees the hold and runs `also` in the same commit. Resolves when that is on disk or, if it cannot be written now,
   * when it waits for the next try; never rejects. A hold that has ended stays as it ended.
   */
  release(hold: Hold, also: () => void): Promise<void> {
    return this.#track(this.#release(hold, also));
  }

  /** How many holds wait to be released because the database could not be written. */
  get unwritten(): number {
    return this.#unwritten.size;
  }

  /** Resolves when no hold waits to be released. */
  whenSettled(): Promise<void> {
    if (this.#unwritten.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /**
   * Waits for the charges and releases that were asked for and tries unwritten ones a last time. What cannot be written
   * even then is released by the next start.
   */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#commits.flush();
    await Promise.all(this.#inFlight);
    await this.#writeUnwritten();
  }

  /** Releases the holds that an earlier process left open. Returns how many. Call it before the first request. */
  recoverAtStart(): number {
    return transact(this.#commits.db, () => this.#ledger.releaseOpenHolds());
  }

  async #charge(hold: Hold, cost_micros: number, also: () => void, otherwise: () => void): Promise<void> {
    if (this.#unwritten.has(hold.entry_id)) throw new HoldNotOpen(`hold ${hold.entry_id} is being released`);
    const at_ms = this.#clock.now_ms();
    try {
      await this.#commits.runEvenIfFull(() => {
        this.#ledger.charge(hold, cost_micros, at_ms);
        also();
      });
    } catch (error) {
      if (error instanceof HoldNotOpen) throw error;
      if (this.#isCharged(hold)) {
        this.#events.onProblem('charge', error);
        return;
      }
      if (isStorageFailure(error)) this.#releaseLater(hold, otherwise, error);
      else await this.#release(hold, otherwise);
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

  async #release(hold: Hold, also: () => void): Promise<void> {
    if (this.#unwritten.has(hold.entry_id)) return;
    const failure = await this.#writeRelease(hold, also);
    if (failure !== null) this.#releaseLater(hold, also, failure.error);
  }

  /** Null when the hold has its end on disk; else why not. */
  async #writeRelease(hold: Hold, also: () => void): Promise<{ readonly error: unknown } | null> {
    try {
      await this.#commits.runEvenIfFull(() => {
        this.#ledger.release(hold);
        also();
      });
      return null;
    } catch (error) {
      if (error instanceof HoldNotOpen) return null;
      if (isStorageFailure(error) || also === nothing) return { error };
      this.#events.onProblem('release', error);
      return this.#writeRelease(hold, nothing);
    }
  }

  #releaseLater(hold: Hold, also: () => void, error: unknown): void {
    if (!this.#unwritten.has(hold.entry_id)) {
      this.#unwritten.set(hold.entry_id, { hold, also });
      this.#waited += 1;
      this.#events.onProblem('release', error);
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
      releases.map(async ({ hold, also }) => {
        if ((await this.#writeRelease(hold, also)) === null) this.#unwritten.delete(hold.entry_id);
      }),
    );
    if (this.#unwritten.size > 0) return;
    if (this.#waited > 0) this.#events.onSettled(this.#waited);
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
  // What is written beside an end when the caller gives nothing.
}
