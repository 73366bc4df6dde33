import type { Books, BooksEvents } from '../store/books.ts';
import type { Hold, HoldRequest, HoldResult } from '../store/hold.ts';
import type { KeptAnswer } from '../store/kept-answer.ts';
import type { UsageRow } from '../store/usage-row.ts';
import type { Clock } from '../time/clock.ts';
import { HoldNotOpen } from './errors.ts';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 5_000;

/** The charge that ends the hold of an answered request. */
export interface ChargeRequest {
  readonly hold: Hold;
  readonly cost_micros: number;
  readonly at_ms: number;
  readonly usage: UsageRow;
  readonly kept: KeptAnswer | null;
}

/** The writes of one database, each durable when it resolves. One that rejects has written nothing. */
export interface LedgerWriter {
  /** Does as `Books.hold`. */
  hold(request: HoldRequest): Promise<HoldResult>;
  /**
   * Ends the hold by deducting the cost, with the usage row and the answer to keep, if there is one. Rejects
   * with `HoldNotOpen`, and as the database does.
   */
  charge(charge: ChargeRequest): Promise<void>;
  /** Ends the hold by freeing it, with the usage row if there is one. Rejects as `charge` does. */
  release(hold: Hold, usage: UsageRow | null): Promise<void>;
  /** Returns true if a charge that rejected was written nevertheless. */
  isCharged(hold: Hold): boolean;
  /** Returns true if the error means that nothing can be written to the database at present. */
  isStorageFailure(error: unknown): boolean;
  /** Does as `Books.recover`. */
  recover(): Promise<number>;
  /** Starts all requested writes; for the close. */
  flush(): void;
  /** Ends the writer, after the last write. */
  close(): Promise<void>;
}

/** A release that could not be written yet, with the usage row for the same commit. */
interface UnwrittenRelease {
  readonly hold: Hold;
  readonly usage: UsageRow | null;
}

/**
 * The books on a database that may fail: every hold ends exactly once, even while the database cannot be
 * written. A charge that cannot be committed becomes a release, and a release is retried in the background. A
 * later `recover` releases those still unwritten when the process ends.
 */
export abstract class DurableBooks implements Books {
  abstract readonly shares_commits: boolean;
  /** The time of each open hold, oldest first, except for those that overtook others in a commit. */
  readonly #open = new Map<string, number>();
  readonly #unwritten = new Map<string, UnwrittenRelease>();
  readonly #in_flight = new Set<Promise<unknown>>();
  #retry_delay_ms = FIRST_RETRY_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** The releases that have had to wait since there was last none. */
  #waited = 0;
  readonly #waiters: (() => void)[] = [];

  constructor(
    private readonly writer: LedgerWriter,
    private readonly clock: Pick<Clock, 'now_ms'>,
    private readonly events: BooksEvents,
  ) {}

  async hold(request: HoldRequest): Promise<HoldResult> {
    const result = await this.writer.hold(request);
    if (result.held) this.#open.set(keyOf(result.hold), request.at_ms);
    return result;
  }

  charge(
    hold: Hold,
    cost_micros: number,
    usage: UsageRow,
    usage_if_not_charged: UsageRow,
    kept: KeptAnswer | null = null,
  ): Promise<void> {
    const at_ms = this.clock.now_ms();
    return this.#track(this.#charge({ hold, cost_micros, at_ms, usage, kept }, usage_if_not_charged));
  }

  release(hold: Hold, usage: UsageRow | null): Promise<void> {
    return this.#track(this.#release(hold, usage));
  }

  get open(): { readonly holds: number; readonly oldest_at_ms: number | null } {
    const [oldest_at_ms = null] = this.#open.values();
    return { holds: this.#open.size, oldest_at_ms };
  }

  /** Returns true for a hold of this process that has not ended. */
  protected isOpen(hold: Hold): boolean {
    return this.#open.has(keyOf(hold));
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
    this.writer.flush();
    await Promise.all(this.#in_flight);
    await this.#writeUnwritten();
    await this.writer.close();
  }

  recover(): Promise<number> {
    return this.writer.recover();
  }

  async #charge(charge: ChargeRequest, usage_if_not_charged: UsageRow): Promise<void> {
    const { hold } = charge;
    if (this.#unwritten.has(keyOf(hold))) throw new HoldNotOpen(`hold ${hold.entry_id} is being released`);
    try {
      await this.writer.charge(charge);
      this.#open.delete(keyOf(hold));
    } catch (error) {
      if (error instanceof HoldNotOpen) {
        this.#open.delete(keyOf(hold));
        throw error;
      }
      if (this.writer.isCharged(hold)) {
        this.#open.delete(keyOf(hold));
        this.events.onProblem('charge', error);
        return;
      }
      if (this.writer.isStorageFailure(error)) this.#releaseLater(hold, usage_if_not_charged, error);
      else await this.#release(hold, usage_if_not_charged);
      throw error;
    }
  }

  async #release(hold: Hold, usage: UsageRow | null): Promise<void> {
    if (this.#unwritten.has(keyOf(hold))) return;
    const failure = await this.#writeRelease(hold, usage);
    if (failure !== null) this.#releaseLater(hold, usage, failure.error);
  }

  /** Writes a release. Returns null when the hold's end is on disk, else the error. */
  async #writeRelease(hold: Hold, usage: UsageRow | null): Promise<{ readonly error: unknown } | null> {
    try {
      await this.writer.release(hold, usage);
      this.#open.delete(keyOf(hold));
      return null;
    } catch (error) {
      if (error instanceof HoldNotOpen) {
        this.#open.delete(keyOf(hold));
        return null;
      }
      if (this.writer.isStorageFailure(error) || usage === null) return { error };
      this.events.onProblem('release', error);
      return this.#writeRelease(hold, null);
    }
  }

  #releaseLater(hold: Hold, usage: UsageRow | null, error: unknown): void {
    if (!this.#unwritten.has(keyOf(hold))) {
      this.#unwritten.set(keyOf(hold), { hold, usage });
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
        if ((await this.#writeRelease(hold, usage)) === null) this.#unwritten.delete(keyOf(hold));
      }),
    );
    if (this.#unwritten.size > 0) return;
    if (this.#waited > 0) this.events.onSettled(this.#waited);
    this.#waited = 0;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  #track(end: Promise<void>): Promise<void> {
    const settled = end.then(nothing, nothing).finally(() => this.#in_flight.delete(settled));
    this.#in_flight.add(settled);
    return end;
  }
}

/** Returns a text that is the hold's alone. After a restore, its number can be another request's. */
function keyOf({ entry_id, request_id }: Hold): string {
  return `${entry_id} ${request_id}`;
}

function nothing(): void {
  // The caller of the end handles its failure.
}
