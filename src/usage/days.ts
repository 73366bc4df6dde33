import { DAY_MS } from '../clock.ts';
import type { DaySpan } from './usage-records.ts';

/** Returns the UTC day of a time, `YYYY-MM-DD`. */
export function dayOf(time_ms: number): string {
  return new Date(time_ms).toISOString().slice(0, 10);
}

/** Returns the first millisecond of a UTC day (`YYYY-MM-DD`). */
export function startOfDay_ms(day: string): number {
  return Date.parse(day);
}

/** Returns the last millisecond of a UTC day (`YYYY-MM-DD`). */
export function endOfDay_ms(day: string): number {
  return startOfDay_ms(day) + DAY_MS - 1;
}

/** Returns the previous UTC day. */
export function dayBefore(day: string): string {
  return dayOf(startOfDay_ms(day) - 1);
}

/** The first and last usage: times of rows, and rolled-up days; null for none. */
export interface Extremes {
  readonly oldest_ms: number | null;
  readonly newest_ms: number | null;
  readonly first_day: string | null;
  readonly last_day: string | null;
}

/** Returns the first and the last UTC day of both; undefined when there is neither. */
export function spanOf({ oldest_ms, newest_ms, first_day, last_day }: Extremes): DaySpan | undefined {
  const days = [
    first_day,
    last_day,
    ...[oldest_ms, newest_ms].map((time_ms) => (time_ms === null ? null : dayOf(time_ms))),
  ]
    .filter((day) => day !== null)
    .sort();
  const [first, last] = [days.at(0), days.at(-1)];
  return first === undefined || last === undefined ? undefined : { first_day: first, last_day: last };
}
