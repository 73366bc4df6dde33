import type { Mode } from '../questions/question.ts';
import type { RollUpRecords } from './roll-up-records.ts';
import type { UsageRow } from './usage-row.ts';

/**
 * Which usage, whether it was rolled up or not. It has the organization (null: all, for the operator), and everything
 * else that usage is grouped by. What is missing is not asked for.
 */
export interface UsageScope {
  readonly organization_id: string | null;
  readonly project_id?: string | undefined;
  readonly api_key_id?: string | undefined;
  readonly model?: string | undefined;
  readonly mode?: Mode | undefined;
  readonly endpoint?: string | undefined;
  /** The HTTP status that the client got. */
  readonly status?: number | undefined;
}

/** Which requests: of which usage, admitted from a time on and before another. */
export interface UsageFilter extends UsageScope {
  readonly from_ms?: number | undefined;
  readonly to_ms?: number | undefined;
  /** Only the request of this id; no request that was rolled up has one. */
  readonly request_id?: string | undefined;
}

/** A usage row with the names of its project and key in place of the ids. */
export interface NamedUsageRow extends Omit<UsageRow, 'organization_id' | 'project_id' | 'api_key_id'> {
  readonly project: string;
  readonly api_key: string;
}

/** The place of a usage row in the order of time. */
export type UsagePlace = Pick<UsageRow, 'time_ms' | 'request_id'>;

/** UTC days (`YYYY-MM-DD`), both included. */
export interface DaySpan {
  readonly first_day: string;
  readonly last_day: string;
}

/** The usage of one UTC day, by everything that a usage row can be grouped by. */
export interface DayTotal extends Pick<UsageRow, 'model' | 'mode' | 'endpoint' | 'status'> {
  readonly organization: string;
  readonly project: string;
  readonly api_key: string;
  readonly requests: number;
  readonly questions: number;
  readonly input_tokens: number;
  readonly cost_micros: number;
}

/** Usage that is there in daily totals only. */
export interface RolledUp {
  readonly requests: number;
  /** The newest UTC day of it. */
  readonly last_day: string;
}

/**
 * The usage as one transaction (or a single read) sees it. Its rows are written by the ledger's side, in the commit
 * that ends a request's hold (`Books`).
 */
export interface UsageRecords extends RollUpRecords {
  /** The rows that follow a place, newest first, at most `limit` of them; from the newest on without a place. */
  page(filter: UsageFilter, limit: number, after: UsagePlace | undefined): Promise<readonly NamedUsageRow[]>;
  /** The first and the last UTC day with usage of the organization (null: of any); undefined when there is none. */
  daysWithUsage(organization_id: string | null): Promise<DaySpan | undefined>;
  /** The totals of a UTC day, ordered by name, of requests that were rolled up and of those that were not. */
  totalsOfDay(day: string, scope: UsageScope): Promise<readonly DayTotal[]>;
  /** How much usage of these UTC days was rolled up; undefined when none was. */
  rolledUp(scope: UsageScope, days: Partial<DaySpan>): Promise<RolledUp | undefined>;
  /** What requests used that were admitted after a time and, where it is given, not after another. */
  admittedAfter(
    after_ms: number,
    until_ms?: number,
  ): Promise<readonly Pick<UsageRow, 'organization_id' | 'time_ms' | 'status' | 'input_tokens'>[]>;
  /** When the newest request was admitted; undefined when there is none. */
  newestTime_ms(): Promise<number | undefined>;
}
