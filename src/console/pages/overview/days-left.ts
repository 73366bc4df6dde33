import { DAY_MS } from '../../../time/clock.ts';

/** Recent spending, and the time that it took. */
interface Spent {
  readonly cost_micros: number;
  readonly span_ms: number;
}

/** The part of a series that tells of spending. */
interface SpendingSeries {
  readonly from_ms: number;
  readonly buckets: readonly { readonly start_ms: number; readonly requests: number }[];
  readonly totals: { readonly cost_micros: number };
}

/** Returns the spending of a series up to now. The buckets before its first request do not count. */
export function spentOf({ from_ms, buckets, totals }: SpendingSeries, now_ms: number): Spent {
  const first = buckets.find(({ requests }) => requests > 0);
  return { cost_micros: totals.cost_micros, span_ms: now_ms - Math.max(from_ms, first?.start_ms ?? from_ms) };
}

/**
 * Returns the days for which credit lasts at the rate of some recent spending; null where nothing was spent. A span of
 * less than a day counts as one, so that the first minutes of an organization give no rate.
 */
export function daysLeft(available_micros: number, spent: Spent): number | null {
  if (spent.cost_micros <= 0) return null;
  const days = Math.max(1, spent.span_ms / DAY_MS);
  return Math.max(0, Math.floor((available_micros * days) / spent.cost_micros));
}

/** Returns the sentence about the days that credit lasts. */
export function daysLeftText(days: number | null): string {
  if (days === null) return 'nothing spent in 7 days';
  if (days > 365) return 'over a year left at this rate';
  return days === 0
    ? 'less than a day left at this rate'
    : `${days} ${days === 1 ? 'day' : 'days'} left at this rate`;
}
