import type { Mode } from '../questions/question.ts';
import type { RollUpRecords } from './roll-up-records.ts';
import type { UsageRow } from './usage-row.ts';

/**
 * The scope of usage, rolled up or not: the organization (null: all, for the operator), and the columns by
 * which usage is grouped. A missing field does not filter.
 */
export interface UsageScope {
  readonly organization_id: string | null;
  readonly project_id?: string | undefined;
  readonly api_key_id?: string | undefined;
  readonly model?: string | undefined;
  readonly mode?: Mode | undefined;
  readonly endpoint?: string | undefined;
  /** The HTTP status of the response. */
  readonly status?: number | undefined;
}

/** A filter for usage admitted from one time on and before another. */
export interface UsageFilter extends UsageScope {
  readonly from_ms?: number | undefined;
  readonly to_ms?: number | undefined;
  /** Only the request of this id; rolled-up requests have none. */
  readonly request_id?: string | undefined;
}

/** A usage row with the names of its project and key in place of the ids. */
export interface NamedUsageRow extends Omit<UsageRow, 'organization_id' | 'project_id' | 'api_key_id'> {
  readonly project: string;
  readonly api_key: string;
}

/** The position of a usage row in the order of time. */
export type UsagePlace = Pick<UsageRow, 'time_ms' | 'request_id'>;

/** UTC days (`YYYY-MM-DD`), both included. */
export interface DaySpan {
  readonly first_day: string;
  readonly last_day: string;
}

/** The usage of one UTC day, by all columns by which usage is grouped. */
export interface DayTotal extends Pick<UsageRow, 'model' | 'mode' | 'endpoint' | 'status'> {
  readonly organization: string;
  readonly project: string;
  readonly api_key: string;
  readonly requests: number;
  readonly questions: number;
  readonly input_tokens: number;
  readonly cost_micros: number;
}

/** Usage that exists only in daily totals. */
export interface RolledUp {
  readonly requests: number;
  /** Its newest UTC day. */
  readonly last_day: string;
}

/**
 * The usage as one transaction (or a single read) sees it. `Books` writes its rows, in the commit that ends a
 * request's hold.
 */
export interface UsageRecords extends RollUpRecords {
  /** Returns the rows after a place, newest first, at most `limit`; without a place, the newest. */
  page(filter: UsageFilter, limit: number, after: UsagePlace | undefined): Promise<readonly NamedUsageRow[]>;
  /**
   * Returns the first and the last UTC day with usage of the organization (null: of any); undefined when
   * there is none.
   */
  daysWithUsage(organization_id: string | null): Promise<DaySpan | undefined>;
  /** Returns the totals of a UTC day, ordered by name, of all requests, rolled up or not. */
  totalsOfDay(day: string, scope: UsageScope): Promise<readonly DayTotal[]>;
  /** Returns the rolled-up usage of these UTC days; undefined when there is none. */
  rolledUp(scope: UsageScope, days: Partial<DaySpan>): Promise<RolledUp | undefined>;
  /** Returns the usage of requests admitted after a time and, if given, not after another. */
  admittedAfter(
    after_ms: number,
    until_ms?: number,
  ): Promise<readonly Pick<UsageRow, 'organization_id' | 'time_ms' | 'status' | 'input_tokens'>[]>;
  /** Returns the time of the newest admission; undefined when there is none. */
  newestTime_ms(): Promise<number | undefined>;
}
