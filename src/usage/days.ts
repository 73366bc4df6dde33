const DAY_MS = 86_400_000;

/** The UTC day of a time, `YYYY-MM-DD`. */
export function dayOf(time_ms: number): string {
  return new Date(time_ms).toISOString().slice(0, 10);
}

/** The last millisecond of a UTC day (`YYYY-MM-DD`). */
export function endOfDay_ms(day: string): number {
  return Date.parse(day) + DAY_MS - 1;
}
