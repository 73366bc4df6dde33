/** Returns the first millisecond of the UTC month of a time. */
export function startOfMonth_ms(time_ms: number): number {
  return Date.parse(`${monthOf(time_ms)}-01T00:00:00Z`);
}

/** Returns the UTC calendar month of a time, `YYYY-MM` (contract: spend limits count by UTC month). */
export function monthOf(time_ms: number): string {
  return new Date(time_ms).toISOString().slice(0, 7);
}
