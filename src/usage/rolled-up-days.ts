import type { DaySpan } from '../store/usage-records.ts';
import { DAY_MS } from '../time/clock.ts';
import { dayOf, startOfDay_ms } from '../time/days.ts';

/** A rolled-up day counts at its noon: a span has all of it or nothing. */
const NOON_MS = DAY_MS / 2;

/** The latest time, so that no bound is beyond the range of dates. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** Returns the time at which a rolled-up UTC day counts. */
export function noonOf_ms(day: string): number {
  return startOfDay_ms(day) + NOON_MS;
}

/** A span of time in both forms. */
export interface Bounds extends DaySpan {
  readonly from_ms: number;
  /** The excluded end. */
  readonly to_ms: number;
}

/** Returns a span of times with the days whose noon is in it. */
export function boundsOf(from_ms = 0, to_ms = LAST_MS): Bounds {
  return { from_ms, to_ms, first_day: dayOf(from_ms + NOON_MS - 1), last_day: dayOf(to_ms - NOON_MS - 1) };
}
