/** Returns the quantile of the values by the nearest rank; NaN for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Returns the middle value, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** Writes one result as a JSON line on standard output. */
export function report(result: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** Rounds to four significant digits, for reports. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
