import { drawHashKey } from '../hashing/half-siphash.ts';
import { QueuePerName } from '../scheduling/queue-per-name.ts';
import type { Clock } from '../time/clock.ts';
import { BodyBudget } from './body-budget.ts';
import { LocalRateWindows, RateLimiter } from './local-rate-windows.ts';
import type { RateWindows } from './rate-windows.ts';
import { RefusalBudgets } from './refusal-budgets.ts';
import { RejectedRows } from './rejected-rows.ts';

/**
 * The requests of an organization that may be planned at once: enough to keep the tokenizer's threads busy.
 */
const PLANNED_AT_ONCE = 4;

/** A request's use of its organization's rate limits. */
export interface UsedLimits {
  readonly organization_id: string;
  /** The time since its admission. */
  readonly age_ms: number;
  /** Billed tokens: 0 for a failed request, which uses none of the tokens per minute. */
  readonly input_tokens: number;
}

interface LimitsParts {
  readonly clock: Clock;
  /** Reads the use of the last minute, oldest first. */
  readonly usedLimits: () => Promise<readonly UsedLimits[]>;
  /** The windows that all nodes of a database share; null where this process has its own. */
  readonly windows: RateWindows | null;
  /** The usage rows of rejected requests that an organization may leave in a day. */
  readonly rejected_rows_per_day: number | undefined;
}

/** Opens the limits of requests: windows, budgets and queues, as `DecisionServices` describes them. */
export async function openLimits({ clock, usedLimits, windows, rejected_rows_per_day }: LimitsParts) {
  return {
    limiter: windows ?? new LocalRateWindows(restoredLimiter(await usedLimits(), clock), clock),
    refusals: new RefusalBudgets(drawHashKey()),
    rejected_rows: new RejectedRows(drawHashKey(), rejected_rows_per_day),
    planning: new QueuePerName(PLANNED_AT_ONCE),
    batch_planning: new QueuePerName(PLANNED_AT_ONCE),
    batch_admission: new QueuePerName(1),
    unplanned_bodies: new BodyBudget(),
  };
}

/** Restores the windows from the last minute's usage, so that a restart gives no client a fresh allowance. */
function restoredLimiter(used_limits: readonly UsedLimits[], clock: Clock): RateLimiter {
  const limiter = new RateLimiter();
  const monotonic_ms = clock.monotonic_ms();
  for (const used of used_limits) {
    limiter.restore(used.organization_id, used.age_ms, used.input_tokens, monotonic_ms);
  }
  return limiter;
}
