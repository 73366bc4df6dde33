import { readdirSync, readFileSync } from 'node:fs';
import { median } from '../support/statistics.ts';

const MEGABYTE = 1_048_576;
const FIFTHS = 5;

/** The service's resources at one time. */
export interface Sample {
  readonly at_ms: number;
  readonly memory_mb: number;
  readonly descriptors: number;
}

/** A time window, in Unix milliseconds. */
export interface Window {
  readonly from_ms: number;
  readonly to_ms: number;
}

/** A fifth of a time: its number of values, median and maximum. */
export interface Fifth {
  readonly count: number;
  readonly median: number;
  readonly max: number;
}

/** Returns the process's resources now; null if it has just ended. */
export function sampleOf(pid: number): Sample | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
    // A zombie process has no memory.
    if (kilobytes === undefined) return null;
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    return { at_ms: Date.now(), memory_mb: (Number(kilobytes) * 1_024) / MEGABYTE, descriptors };
  } catch {
    return null;
  }
}

/** Returns the values by fifths of the time between the two. */
export function byFifths<T extends { readonly at_ms: number }>(
  all: readonly T[],
  measure: (one: T) => number,
  { from_ms, to_ms }: Window,
): readonly Fifth[] {
  const length_ms = (to_ms - from_ms) / FIFTHS;
  return Array.from({ length: FIFTHS }, (_, index) => {
    const [first_ms, last_ms] = [from_ms + index * length_ms, from_ms + (index + 1) * length_ms];
    const values = all.filter(({ at_ms }) => at_ms >= first_ms && at_ms < last_ms).map(measure);
    return {
      count: values.length,
      median: median(values),
      max: values.reduce((most, value) => Math.max(most, value), 0),
    };
  });
}
