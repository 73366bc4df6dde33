/** Returns the UTC calendar month of a time, `YYYY-MM` (contract: spend limits count by UTC month). */
export function monthOf(time_ms: number): string {
  return new Date(time_ms).toISOString().slice(0, 7);
}
