import { DAY_MS } from '../../../time/clock.ts';

/**
 * Returns the days for which credit lasts at the rate of some recent spending; null where nothing was spent. A span of
 * less than a day counts as one, so that the first minutes of an organization give no rate.
 */
export function daysLeft(
  available_micros: number,
  spent: { readonly cost_micros: number; readonly span_ms: number },
): number | null {
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
