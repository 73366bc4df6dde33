import type { HashKey } from '../hashing/half-siphash.ts';
import { DAY_MS } from '../time/clock.ts';
import { AttemptBudgets } from './attempt-budgets.ts';

/** The rows of an organization in a day, and once more at the start: four megabytes. */
const ROWS_PER_DAY = 10_000;

/**
 * Limits the usage rows that an organization's requests leave when the model rejects them. Such requests are
 * free but their rows are kept, so rate limits alone would let one organization fill the disk. Pure, as
 * `AttemptBudgets` is.
 */
export class RejectedRows {
  readonly #budgets: AttemptBudgets<'row'>;

  constructor(key: HashKey, rows_per_day = ROWS_PER_DAY) {
    this.#budgets = new AttemptBudgets(
      { row: { at_once: rows_per_day, refill_ms: DAY_MS / rows_per_day } },
      key,
    );
  }

  /** Takes one of the organization's rows; returns false when none is left. */
  take(organization_id: string, now_ms: number): boolean {
    return this.#budgets.spend('row', organization_id, now_ms) === 0;
  }
}
