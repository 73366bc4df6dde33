import type { DaySpan } from '../store/usage-records.ts';
import { dayOf } from '../time/days.ts';

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
