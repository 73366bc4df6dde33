import { DAY_MS } from './clock.ts';

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
