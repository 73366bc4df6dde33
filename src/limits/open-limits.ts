import type { Clock } from '../clock.ts';
import { drawHashKey } from '../hashing/half-siphash.ts';
import type { UsageRecords } from '../usage/usage-records.ts';
import { usedLimits } from '../usage/used-limits.ts';
import { BodyBudget } from './body-budget.ts';
import { QueuePerName } from './queue-per-name.ts';
import { RateLimiter } from './rate-limiter.ts';
import { WINDOW_MS } from './rate-status.ts';
import { LocalRateWindows, type RateWindows } from './rate-windows.ts';
import { RefusalBudgets } from './refusal-budgets.ts';
import { RejectedRows } from './rejected-rows.ts';

/**
 * The requests of an organization that may be planned at once: enough to keep the tokenizer's threads busy.
 */
const PLANNED_AT_ONCE = 4;

interface LimitsParts {
  readonly clock: Clock;
  readonly usage: UsageRecords;
  /** The windows that all nodes of a database share; null where this process has its own. */
  readonly windows: RateWindows | null;
  /** The usage rows of rejected requests that an organization may leave in a day. */
  readonly rejected_rows_per_day: number | undefined;
}

/** Opens the limits of requests: windows, budgets and queues, as `DecisionServices` describes them. */
export async function openLimits({ clock, usage, windows, rejected_rows_per_day }: LimitsParts) {
  return {
    limiter: windows ?? new LocalRateWindows(await restoredLimiter(usage, clock), clock),
    refusals: new RefusalBudgets(drawHashKey()),
    rejected_rows: new RejectedRows(drawHashKey(), rejected_rows_per_day),
    planning: new QueuePerName(PLANNED_AT_ONCE),
    batch_planning: new QueuePerName(PLANNED_AT_ONCE),
    batch_admission: new QueuePerName(1),
    unplanned_bodies: new BodyBudget(),
  };
}

/** Restores the windows from the last minute's usage, so that a restart gives no client a fresh allowance. */
async function restoredLimiter(usage: UsageRecords, clock: Clock): Promise<RateLimiter> {
  const limiter = new RateLimiter();
  const monotonic_ms = clock.monotonic_ms();
  for (const used of await usedLimits(usage, clock.now_ms(), WINDOW_MS)) {
    limiter.restore(used.organization_id, used.age_ms, used.input_tokens, monotonic_ms);
  }
  return limiter;
}
