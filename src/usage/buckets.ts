import type { Span } from '../store/usage-reader.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, MS_PER_S } from '../time/clock.ts';
import { TIME_MAX_MS } from '../time/days.ts';

/** The width of buckets, by the length of the span. */
const WIDTHS = [
  { width_ms: MINUTE_MS, span_max_ms: 4 * HOUR_MS },
  { width_ms: HOUR_MS, span_max_ms: 10 * DAY_MS },
] as const;

/** The same for a chart, which needs enough buckets for a curve: 26 hours are a day with its padding. */
const FINE_WIDTHS = [
  { width_ms: 10 * MS_PER_S, span_max_ms: HOUR_MS },
  { width_ms: MINUTE_MS, span_max_ms: 6 * HOUR_MS },
  { width_ms: 5 * MINUTE_MS, span_max_ms: 26 * HOUR_MS },
  { width_ms: HOUR_MS, span_max_ms: 10 * DAY_MS },
] as const;

/** Requests within less than this share of a span are shown without the rest of it. */
const FITTED_SHARE_MAX = 1 / 8;

/** The least time that a fitted span has before its first request and after its last one. */
const FITTED_PADDING_MS = 5 * MINUTE_MS;

/** The most days with a bucket each; longer spans have buckets of several days. */
const DAYS_MAX = 400;

/** The bound of the offsets of time zones, in both directions. */
const OFFSET_MAX_MINUTES = 14 * 60;

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
 * totals are, and because one offset does not hold over a clock change. `is_fine` has narrower buckets for a chart.
 * Throws as `requireSpan`.
 */
export function bucketsOf(span: Span, whole_days: boolean, is_fine = false): Buckets {
  requireSpan(span);
  const { from_ms, to_ms, offset_minutes } = span;
  const width_ms = widthOf(to_ms - from_ms, whole_days, is_fine ? FINE_WIDTHS : WIDTHS);
  const offset_ms = width_ms < DAY_MS ? offset_minutes * MINUTE_MS : 0;
  const first_ms = Math.floor((from_ms + offset_ms) / width_ms) * width_ms - offset_ms;
  const count = Math.ceil((to_ms - first_ms) / width_ms);
  return { width_ms, starts_ms: Array.from({ length: count }, (_, index) => first_ms + index * width_ms) };
}

/**
 * Returns the part of a span with all of its requests, in whole minutes; the span where that is an eighth of it or more.
 * `used` has the times of the first and the last request.
 */
export function fittedSpan<Given extends Span>(
  span: Given,
  used: { readonly first_ms: number; readonly last_ms: number },
): Given {
  const used_ms = used.last_ms + 1 - used.first_ms;
  const padding_ms = Math.max(FITTED_PADDING_MS, used_ms / 10);
  if (used_ms + 2 * padding_ms >= FITTED_SHARE_MAX * (span.to_ms - span.from_ms)) return span;
  const from_ms = Math.floor((used.first_ms - padding_ms) / MINUTE_MS) * MINUTE_MS;
  const to_ms = Math.ceil((used.last_ms + 1 + padding_ms) / MINUTE_MS) * MINUTE_MS;
  return { ...span, from_ms: Math.max(span.from_ms, from_ms), to_ms: Math.min(span.to_ms, to_ms) };
}

function widthOf(
  span_ms: number,
  whole_days: boolean,
  widths: readonly { readonly width_ms: number; readonly span_max_ms: number }[],
): number {
  const narrow = whole_days ? undefined : widths.find(({ span_max_ms }) => span_ms <= span_max_ms);
  return narrow?.width_ms ?? Math.ceil(span_ms / DAY_MS / DAYS_MAX) * DAY_MS;
}
