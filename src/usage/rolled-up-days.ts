import { DAY_MS } from '../clock.ts';
import { dayOf, startOfDay_ms } from './days.ts';
import type { DaySpan } from './usage-records.ts';

/** A day that was rolled up counts as made at its noon: a span has all of it or nothing. */
const NOON_MS = DAY_MS / 2;

/** The latest time that a day can be of, so that no bound is beyond what a date can say. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** The time that a UTC day counts as made at which was rolled up. */
export function noonOf_ms(day: string): number {
  return startOfDay_ms(day) + NOON_MS;
}

/** A span of time in both of its forms. */
export interface Bounds extends DaySpan {
  readonly from_ms: number;
  /** Excluded. */
  readonly to_ms: number;
}

/** The times of rows, and the days whose noon lies between them. */
export function boundsOf(from_ms = 0, to_ms = LAST_MS): Bounds {
  return { from_ms, to_ms, first_day: dayOf(from_ms + NOON_MS - 1), last_day: dayOf(to_ms - NOON_MS - 1) };
}
