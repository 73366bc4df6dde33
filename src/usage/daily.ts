import type { Db } from '../../db/sqlite/connection.ts';
import { formatDollars } from '../money.ts';
import { csvLine } from './csv.ts';
import { dayOf } from './days.ts';
import type { UsageFilter } from './export.ts';

/** What a line of the daily totals says. */
export const DAILY_COLUMNS = [
  'day_utc',
  'organization',
  'project',
  'api_key',
  'model',
  'mode',
  'endpoint',
  'status',
  'requests',
  'questions',
  'input_tokens',
  'cost_usd',
] as const;

const PIECE_LINES = 500;

interface DailyRow {
  readonly day: string;
  readonly organization: string;
  readonly project: string;
  readonly api_key: string;
  readonly model: string;
  readonly mode: string;
  readonly endpoint: string;
  readonly status: number;
  readonly requests: number;
  readonly questions: number;
  readonly input_tokens: number;
  readonly cost_micros: number;
}

interface FilterValues extends Record<string, string | null> {
  readonly from_day: string | null;
  readonly to_day: string | null;
  readonly organization_id: string | null;
  readonly project_id: string | null;
  readonly api_key_id: string | null;
}

/** A time within a day stands for the whole day. */
function valuesOf(filter: UsageFilter): FilterValues {
  return {
    from_day: filter.from_ms === undefined ? null : dayOf(filter.from_ms),
    to_day: filter.to_ms === undefined ? null : dayOf(filter.to_ms - 1),
    organization_id: filter.organization_id,
    project_id: filter.project_id ?? null,
    api_key_id: filter.api_key_id ?? null,
  };
}

const MATCHES = `($from_day IS NULL OR usage.day >= $from_day) AND ($to_day IS NULL OR usage.day <= $to_day)
  AND ($organization_id IS NULL OR usage.organization_id = $organization_id)
  AND ($project_id IS NULL OR usage.project_id = $project_id)
  AND ($api_key_id IS NULL OR usage.api_key_id = $api_key_id)`;

const DAILY = `
  SELECT day, organizations.name AS organization, projects.name AS project, api_keys.name AS api_key, model, mode,
    endpoint, status, sum(requests) AS requests, sum(questions) AS questions, sum(input_tokens) AS input_tokens,
    sum(cost_micros) AS cost_micros
  FROM (
    SELECT day, organization_id, project_id, api_key_id, model, mode, endpoint, status, requests, questions,
      input_tokens, cost_micros
    FROM usage_days
    UNION ALL
    SELECT strftime('%Y-%m-%d', time_ms / 1000, 'unixepoch') AS day, organization_id, project_id, api_key_id, model, mode,
      endpoint, status, 1, questions, input_tokens, cost_micros
    FROM usage_records) AS usage
  JOIN organizations ON organizations.id = usage.organization_id
  JOIN projects ON projects.id = usage.project_id
  JOIN api_keys ON api_keys.id = usage.api_key_id
  WHERE ${MATCHES}
  GROUP BY day, usage.organization_id, usage.project_id, usage.api_key_id, model, mode, endpoint, status
  ORDER BY day DESC, organization, project, api_key, model, mode, endpoint, status`;

/**
 * The usage as CSV text (RFC 4180), in pieces of whole lines: the header, then one line a UTC day, organization,
 * project, key, model, mode, endpoint and status, newest day first. Requests that were rolled up are in it as those that
 * were not.
 */
export function* dailyUsage(db: Db, filter: UsageFilter): Generator<string, void, undefined> {
  let piece = csvLine(DAILY_COLUMNS);
  let lines = 1;
  for (const row of db.$client.query<DailyRow, FilterValues>(DAILY).iterate(valuesOf(filter))) {
    piece += lineOf(row);
    lines += 1;
    if (lines < PIECE_LINES) continue;
    yield piece;
    piece = '';
    lines = 0;
  }
  yield piece;
}

/** What of the filter's usage is there in daily totals only; null when nothing is. */
export interface RolledUp {
  readonly requests: number;
  /** The newest UTC day of it. */
  readonly last_day: string;
}

/** Looks up how much of the usage an export has no rows of any more. */
export function rolledUpUsage(db: Db, filter: UsageFilter): RolledUp | null {
  const found = db.$client
    .query<{ requests: number | null; last_day: string | null }, FilterValues>(
      `SELECT sum(requests) AS requests, max(day) AS last_day FROM usage_days AS usage WHERE ${MATCHES}`,
    )
    .get(valuesOf(filter));
  if (found === null || found.requests === null || found.last_day === null) return null;
  return { requests: found.requests, last_day: found.last_day };
}

function lineOf(row: DailyRow): string {
  return csvLine([
    row.day,
    row.organization,
    row.project,
    row.api_key,
    row.model,
    row.mode,
    row.endpoint,
    row.status,
    row.requests,
    row.questions,
    row.input_tokens,
    formatDollars(row.cost_micros),
  ]);
}
