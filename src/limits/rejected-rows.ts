import { DAY_MS } from '../clock.ts';
import type { HashKey } from '../hashing/half-siphash.ts';
import { AttemptBudgets } from './attempt-budgets.ts';

/** Such rows of an organization in a day, and once more at the beginning: four megabytes. */
const ROWS_PER_DAY = 10_000;

/**
 * How many usage rows an organization leaves with requests that the model rejects. They cost nothing and their rows are
 * kept, so their rate limits alone would let one of them fill the disk. Pure, as `AttemptBudgets` is.
 */
export class RejectedRows {
  readonly #budgets: AttemptBudgets<'row'>;

  constructor(key: HashKey, rows_per_day = ROWS_PER_DAY) {
    this.#budgets = new AttemptBudgets(
      { row: { at_once: rows_per_day, refill_ms: DAY_MS / rows_per_day } },
      key,
    );
  }

  /** Takes a row of the organization's; false when none is left. */
  take(organization_id: string, now_ms: number): boolean {
    return this.#budgets.spend('row', organization_id, now_ms) === 0;
  }
}
