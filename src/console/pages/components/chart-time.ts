import { DAY_MS } from '../../../time/clock.ts';
import { formatExact } from '../format.ts';
import { chosenZone } from '../time-zone.ts';

/** A span of time that a chart is zoomed to. */
export interface Span {
  readonly from_ms: number;
  readonly to_ms: number;
}

/**
 * Returns the time zone for times of such buckets: UTC for whole days, otherwise undefined for the reader's.
 */
export function zoneOf(bucket_ms: number | undefined): 'UTC' | undefined {
  return bucket_ms !== undefined && bucket_ms % DAY_MS === 0 ? 'UTC' : chosenZone();
}

/** Returns a time of such buckets in full; empty for none. */
export function exactTime(time_ms: number | undefined, bucket_ms: number | undefined): string {
  return time_ms === undefined ? '' : formatExact(time_ms, zoneOf(bucket_ms));
}
