import type { Grouping } from './groupings.ts';
import type { UsageFilter, UsageRecords } from './usage-records.ts';
import type { UsageRow } from './usage-row.ts';

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

/** Percentiles of the model's time for the answered requests, by nearest rank. */
export interface LatencyPercentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** The totals of requests. */
export interface UsageTotals {
  readonly requests: number;
  /** The number of requests for each HTTP status, by status. */
  readonly statuses: readonly { readonly status: number; readonly requests: number }[];
  readonly questions: number;
  readonly input_tokens: number;
  readonly cost_micros: number;
  /** The latency of the answered requests that were not rolled up; null when there are none. */
  readonly latency_ms: LatencyPercentiles | null;
  /** The number of requests that exist only in daily totals, which have no latencies. */
  readonly rolled_up_requests: number;
}

/** The requests to add up, and the span of the buckets. */
export interface SeriesQuestion extends Omit<UsageFilter, 'from_ms' | 'to_ms'>, Span {
  /**
   * True for a chart: narrower buckets, and only the part of the span with requests where that is small. With a rolled-up
   * day in the span, it is shown whole.
   */
  readonly fits_data?: boolean;
  readonly group_by?: Grouping | undefined;
}

/** A span of usage; without times, all of it. */
export type UsageSpan = Pick<UsageFilter, 'organization_id' | 'from_ms' | 'to_ms'>;

/** The sums of the requests that were admitted in a bucket. */
export interface UsageBucket extends UsageTotals {
  /** May be before the requested span; only requests in the span count. */
  readonly start_ms: number;
}

/** The requests of one value of the column by which they are grouped: an array has one number for each bucket. */
export interface UsageGroup {
  /** The id of a project or key, a model, mode or status; null for all values but the largest. */
  readonly value: string | null;
  readonly requests: readonly number[];
  readonly input_tokens: readonly number[];
  readonly cost_micros: readonly number[];
}

/**
 * Usage over time, including empty buckets. A rolled-up day counts at its noon (UTC). With such a day in the
 * span, no bucket is narrower than a day.
 */
export interface UsageSeries {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly bucket_ms: number;
  readonly buckets: readonly UsageBucket[];
  /** The groups with most requests, largest first, and all others as one; empty where nothing groups them. */
  readonly groups: readonly UsageGroup[];
  readonly totals: UsageTotals;
}

/** The values to filter by, each list in its own order. */
export interface UsageValues {
  readonly models: readonly string[];
  readonly modes: readonly UsageRow['mode'][];
  readonly endpoints: readonly string[];
  readonly statuses: readonly number[];
}

/** A key, and the cost of its requests. */
export interface KeySpend {
  readonly api_key_id: string;
  readonly cost_micros: number;
}

/** Long reads of usage, outside of the event loop. Each sees one state of the database. */
export interface UsageReader extends Pick<UsageRecords, 'page'> {
  /** Returns usage over time. Rejects with `RangeError` for an invalid span. */
  series(question: SeriesQuestion): Promise<UsageSeries>;
  /** Returns the values to filter by in the usage of a span. */
  values(span: UsageSpan): Promise<UsageValues>;
  /**
   * Returns the cost of each key's requests since that time. Requests that are rolled up do not count: none of the present
   * UTC month is.
   */
  spendByKey(organization_id: string, from_ms: number): Promise<readonly KeySpend[]>;
  /** Returns the time of the organization's first known answer; undefined when there is none. */
  firstAnswer_ms(organization_id: string): Promise<number | undefined>;
}
