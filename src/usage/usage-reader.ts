import type { Span } from './buckets.ts';
import type { UsageFilter, UsageRecords } from './usage-records.ts';
import type { UsageRow } from './usage-row.ts';
import type { UsageTotals } from './usage-sum.ts';

/** Which requests to add up, in which buckets of time. */
export type SeriesQuestion = Omit<UsageFilter, 'from_ms' | 'to_ms'> & Span;

/** All usage of a span; without times, of all time. */
export type UsageSpan = Pick<UsageFilter, 'organization_id' | 'from_ms' | 'to_ms'>;

/** What the requests that were admitted in a bucket add up to. */
export interface UsageBucket extends UsageTotals {
  /** May lie before the span that was asked for, of which alone requests count. */
  readonly start_ms: number;
}

/**
 * Usage over time. Every bucket is there, empty ones too. A day that was rolled up counts as made at its noon (UTC).
 * With such a day in the span, no bucket is narrower than a day.
 */
export interface UsageSeries {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly bucket_ms: number;
  readonly buckets: readonly UsageBucket[];
  readonly totals: UsageTotals;
}

/** What there is to filter by, each in its own order. */
export interface UsageValues {
  readonly models: readonly string[];
  readonly modes: readonly UsageRow['mode'][];
  readonly endpoints: readonly string[];
  readonly statuses: readonly number[];
}

/** Reads of usage that may take long, beside the event loop. Each sees one state of the database. */
export interface UsageReader extends Pick<UsageRecords, 'page'> {
  /** Rejects with `RangeError` for a span that is none. */
  series(question: SeriesQuestion): Promise<UsageSeries>;
  /** What there is to filter by in the usage of a span. */
  values(span: UsageSpan): Promise<UsageValues>;
  /** When the first request of the organization was answered that is known of; undefined when there is none. */
  firstAnswer_ms(organization_id: string): Promise<number | undefined>;
}
