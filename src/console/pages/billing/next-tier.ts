import { DAY_MS } from '../../../time/clock.ts';
import { formatDate, formatMoney } from '../format.ts';

/** The requirements of the next tier that decide when it is reached. */
export interface TierGoal {
  readonly tier: number;
  readonly days: number;
  /** The amount still to be paid; 0 when only time is missing. */
  readonly missing_micros: number;
  /** The time at which its days have passed since the first payment; null before that. */
  readonly days_passed_at_ms: number | null;
}

/**
 * Returns one sentence that says when and how the next tier is reached. Its day is in the reader's time zone or the given
 * one.
 */
export function reachSentence(goal: TierGoal, now_ms: number, time_zone?: string): string {
  const { tier, days, missing_micros, days_passed_at_ms } = goal;
  const money = formatMoney(missing_micros);
  if (days_passed_at_ms === null && days > 0) {
    return `Tier ${tier} is reached ${days} days after the first payment, once ${money} in all is paid.`;
  }
  const has_waited = days_passed_at_ms === null || days_passed_at_ms <= now_ms;
  if (has_waited && missing_micros === 0) return `Tier ${tier} is reached.`;
  if (has_waited) return `Pay ${money} more to reach Tier ${tier} at once.`;
  const day = formatDate(days_passed_at_ms, time_zone);
  if (missing_micros === 0) return `Tier ${tier} comes by itself on ${day}: enough is paid.`;
  return `Tier ${tier} can be reached on ${day} at the earliest, once ${money} more is paid.`;
}

/** Returns whole days since the first payment, at most as many as the next tier requires. */
export function daysPassed({ days, days_passed_at_ms }: TierGoal, now_ms: number): number {
  if (days_passed_at_ms === null) return 0;
  const left = Math.ceil((days_passed_at_ms - now_ms) / DAY_MS);
  return Math.min(days, Math.max(0, days - left));
}
