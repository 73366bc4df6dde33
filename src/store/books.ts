import type { Hold, HoldRequest, HoldResult } from './hold.ts';
import type { KeptAnswer } from './kept-answer.ts';
import type { UsageRow } from './usage-row.ts';

/** The events that an operator should know about: holds whose ends could not be written as requested. */
export interface BooksEvents {
  /** Called when an end failed and was repaired: a release waits for a retry, or lost its usage row. */
  readonly onProblem: (step: 'charge' | 'release', error: unknown) => void;
  /** Called when all delayed releases are written; `holds` is their number. */
  readonly onSettled: (holds: number) => void;
}

/**
 * The money of requests. A hold is durable when `hold` resolves, and ends exactly once, by a charge or a
 * release, even while the store cannot be written. The commit that ends a hold also writes the request's
 * usage row.
 */
export interface Books {
  /**
   * Reserves the amount when the monthly limits of project and key and the organization's credit all allow it
   * (contract: a hold covers the worst-case cost). Writes nothing on a refusal. A taken claim is refused first,
   * then the project's limit, the key's, and the credit. Where a limit is spent, even a hold of 0 is refused.
   * Rejects with `UnknownAccount`, with `RangeError` for an amount that is not a whole number of
   * micro-dollars from 0, and with the store's error.
   */
  hold(request: HoldRequest): Promise<HoldResult>;
  /**
   * Ends the hold by deducting the cost, from 0 to the amount held, and frees the remainder. Resolves when
   * that and `usage` are durable. When it rejects, the client must get an error (contract: no error is
   * charged): the hold is then released, now or later, with `usage_if_not_charged`. Where the hold has a
   * claim, `kept` is stored for it in the same commit.
   */
  charge(
    hold: Hold,
    cost_micros: number,
    usage: UsageRow,
    usage_if_not_charged: UsageRow,
    kept?: KeptAnswer | null,
  ): Promise<void>;
  /**
   * Ends the hold by freeing all of it, and its claim, with the usage row if there is one. Resolves when that
   * is durable, or queued for a retry because it cannot be written now; never rejects. Changes nothing for a
   * hold that has ended.
   */
  release(hold: Hold, usage: UsageRow | null): Promise<void>;
  /** True if a write that is requested together with a hold joins its commit, at no extra cost. */
  readonly shares_commits: boolean;
  /** The number of holds of this process without an end on disk, and the time of the oldest. */
  readonly open: { readonly holds: number; readonly oldest_at_ms: number | null };
  /** The number of holds that wait to be released because the store could not be written. */
  readonly unwritten: number;
  /** Resolves when no hold waits to be released. */
  whenSettled(): Promise<void>;
  /**
   * Releases the holds that no living process will end, as far as this process knows. Resolves with their
   * number. Call it before the first request.
   */
  recover(): Promise<number>;
  /**
   * Waits for the requested charges and releases, and tries unwritten ones a last time. A later `recover`
   * releases the rest.
   */
  close(): Promise<void>;
}
