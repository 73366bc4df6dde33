import type { KeptAnswer } from '../idempotency/kept-answer.ts';
import type { UsageRow } from '../usage/usage-row.ts';
import type { Hold, HoldRequest, HoldResult } from './hold.ts';

/** What an operator should know of ends that could not be written as they were asked for. */
export interface BooksEvents {
  /** An end failed and is mended: a release waits for the next try, or went without its usage row. */
  readonly onProblem: (step: 'charge' | 'release', error: unknown) => void;
  /** Every release that had to wait is written; `holds` is how many those were. */
  readonly onSettled: (holds: number) => void;
}

/**
 * The money of requests. A hold is durable when `hold` resolves, and ends exactly once, by a charge or a release, even
 * while the store cannot be written. The usage row of a request is written in the commit that ends its hold.
 */
export interface Books {
  /**
   * Reserves the amount when the project's monthly limit and the organization's credit both allow it (contract: a hold
   * covers the worst-case cost). A refusal names the limit first, and writes nothing. A project that has spent its
   * limit is refused even a hold of nothing. A claim that is taken refuses a hold before both. Rejects with `UnknownAccount`, with `RangeError` for an amount that is not
   * a whole number of micro-dollars from 0, and with the store's error.
   */
  hold(request: HoldRequest): Promise<HoldResult>;
  /**
   * Ends the hold by deducting the cost, from 0 to the amount held; the remainder is free again. Resolves when that and
   * `usage` are durable. When it rejects, the client must get an error (contract: no error is charged): the hold is
   * then released, now or later, with `usage_if_not_charged`. Where the hold has a claim, `kept` is stored for it in
   * the same commit.
   */
  charge(
    hold: Hold,
    cost_micros: number,
    usage: UsageRow,
    usage_if_not_charged: UsageRow,
    kept?: KeptAnswer | null,
  ): Promise<void>;
  /**
   * Ends the hold by freeing all of it, its claim too, with the usage row if there is one. Resolves when that is
   * durable or, if it cannot be written now, when it waits for the next try; never rejects. A hold that has ended stays
   * as it ended.
   */
  release(hold: Hold, usage: UsageRow | null): Promise<void>;
  /** Whether a write that is asked for together with a hold is in its commit, at no cost of its own. */
  readonly shares_commits: boolean;
  /** The holds of this process that have no end on disk yet. */
  readonly open: { readonly holds: number; readonly oldest_at_ms: number | null };
  /** How many holds wait to be released because the store could not be written. */
  readonly unwritten: number;
  /** Resolves when no hold waits to be released. */
  whenSettled(): Promise<void>;
  /**
   * Releases the holds that no living process will end, as this process knows it. Resolves with how many. Call it
   * before the first request.
   */
  recover(): Promise<number>;
  /**
   * Waits for the charges and releases that were asked for, and tries unwritten ones a last time. What cannot be
   * written even then is released by a later `recover`.
   */
  close(): Promise<void>;
}
