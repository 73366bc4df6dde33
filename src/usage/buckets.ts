import { DAY_MS, HOUR_MS, MINUTE_MS } from '../clock.ts';

/** The width of buckets, by the length of the span. */
const WIDTHS = [
  { width_ms: MINUTE_MS, span_max_ms: 4 * HOUR_MS },
  { width_ms: HOUR_MS, span_max_ms: 10 * DAY_MS },
] as const;

/** The most days with a bucket each; longer spans have buckets of several days. */
const DAYS_MAX = 400;

/** The latest time of a span: years have four digits. */
export const TIME_MAX_MS = Date.UTC(9999, 11, 30);

/** The bound of the offsets of time zones, in both directions. */
const OFFSET_MAX_MINUTES = 14 * 60;

/** A span of time, its end excluded, with an offset of local time. */
export interface Span {
  readonly from_ms: number;
  readonly to_ms: number;
  /**
   * The minutes by which local time is ahead of UTC: buckets begin at whole local minutes and hours. Days are
   * those of UTC.
   */
  readonly offset_minutes: number;
}

/** Consecutive spans of one width; the first may begin before the covered span. */
export interface Buckets {
  readonly width_ms: number;
  readonly starts_ms: readonly number[];
}

/**
 * Throws `RangeError` for a span that does not begin before its end, and for an offset that no time zone has.
 */
export function requireSpan({ from_ms, to_ms, offset_minutes }: Span): void {
  const isTime = (time_ms: number) => Number.isInteger(time_ms) && time_ms >= 0 && time_ms <= TIME_MAX_MS;
  if (!isTime(from_ms) || !isTime(to_ms) || from_ms >= to_ms) {
    throw new RangeError(`there is no time from ${from_ms} to ${to_ms}`);
  }
  if (!Number.isInteger(offset_minutes) || Math.abs(offset_minutes) > OFFSET_MAX_MINUTES) {
    throw new RangeError(`${offset_minutes} minutes are no offset of a time zone`);
  }
}

/**
 * Returns the buckets that cover a span: a minute wide up to 4 hours, an hour up to 10 days, then whole days.
 * There are never more than 402. With `whole_days` none is narrower than a day. Days are UTC, because all
 * totals are, and because one offset does not hold over a clock change. Throws as `requireSpan`.
 */
export function bucketsOf(span: Span, whole_days: boolean): Buckets {
  requireSpan(span);
  const { from_ms, to_ms, offset_minutes } = span;
  const width_ms = widthOf(to_ms - from_ms, whole_days);
  const offset_ms = width_ms < DAY_MS ? offset_minutes * MINUTE_MS : 0;
  const first_ms = Math.floor((from_ms + offset_ms) / width_ms) * width_ms - offset_ms;
  const count = Math.ceil((to_ms - first_ms) / width_ms);
  return { width_ms, starts_ms: Array.from({ length: count }, (_, index) => first_ms + index * width_ms) };
}

function widthOf(span_ms: number, whole_days: boolean): number {
  const narrow = whole_days ? undefined : WIDTHS.find(({ span_max_ms }) => span_ms <= span_max_ms);
  return narrow?.width_ms ?? Math.ceil(span_ms / DAY_MS / DAYS_MAX) * DAY_MS;
}
