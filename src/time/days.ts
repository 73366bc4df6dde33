import { DAY_MS } from './clock.ts';

/** The latest time of a span that somebody asks for: years have four digits. */
export const TIME_MAX_MS = Date.UTC(9999, 11, 30);

/** Returns the UTC day of a time, `YYYY-MM-DD`. */
export function dayOf(time_ms: number): string {
  return new Date(time_ms).toISOString().slice(0, 10);
}

/** Returns true for a UTC day that exists, as `YYYY-MM-DD`. `Date.parse` takes 31 February for 3 March. */
export function isDay(text: string): boolean {
  const time_ms = Date.parse(text);
  return !Number.isNaN(time_ms) && dayOf(time_ms) === text;
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
