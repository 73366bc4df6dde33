import { and, desc, eq, gte, lt, type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import { apiKeys, projects, usageRecords } from '../../db/sqlite/schema.ts';
import { formatDollars } from '../money.ts';
import { csvLine } from './csv.ts';

/** The most rows that one export offers (spec, "Billing constants"). */
export const EXPORT_ROWS_MAX = 100_000;

/** The spec's columns, in its order. */
export const EXPORT_COLUMNS = [
  'time_utc',
  'model',
  'mode',
  'endpoint',
  'project',
  'api_key',
  'status',
  'questions',
  'input_tokens',
  'cost_usd',
  'latency_ms',
  'request_id',
] as const;

const PAGE_ROWS = 500;

/** Which requests to export: of one organization (null: of all, for the operator), from a time on and before another, of one project, of one key. */
export interface UsageFilter {
  readonly organization_id: string | null;
  readonly from_ms?: number | undefined;
  readonly to_ms?: number | undefined;
  readonly project_id?: string | undefined;
  readonly api_key_id?: string | undefined;
}

type Row = ReturnType<typeof readPage>[number];

/**
 * The usage export as CSV text (RFC 4180), in pieces of whole lines: the header, then one line a request, newest
 * first, at most `rows_max` of them. Reads page by page and lets other work run in between, so that neither memory nor
 * the time of other requests depends on its length.
 */
export async function* exportUsage(
  db: Db,
  filter: UsageFilter,
  rows_max = EXPORT_ROWS_MAX,
): AsyncGenerator<string, void, undefined> {
  yield csvLine(EXPORT_COLUMNS);
  let left = rows_max;
  let last: Row | undefined;
  while (left > 0) {
    const rows = readPage(db, filter, Math.min(left, PAGE_ROWS), last);
    last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map(lineOf).join('');
    left -= rows.length;
    await new Promise<void>((resume) => setImmediate(resume));
  }
}

/** The rows that follow `after` in the order of the export. */
function readPage(
  db: Db,
  filter: UsageFilter,
  rows: number,
  after: { readonly time_ms: number; readonly request_id: string } | undefined,
) {
  const conditions: (SQL | undefined)[] = [
    filter.organization_id === null ? undefined : eq(usageRecords.organization_id, filter.organization_id),
    filter.from_ms === undefined ? undefined : gte(usageRecords.time_ms, filter.from_ms),
    filter.to_ms === undefined ? undefined : lt(usageRecords.time_ms, filter.to_ms),
    filter.project_id === undefined ? undefined : eq(usageRecords.project_id, filter.project_id),
    filter.api_key_id === undefined ? undefined : eq(usageRecords.api_key_id, filter.api_key_id),
    after === undefined
      ? undefined
      : sql`(${usageRecords.time_ms}, ${usageRecords.request_id}) < (${after.time_ms}, ${after.request_id})`,
  ];
  return db
    .select({
      time_ms: usageRecords.time_ms,
      model: usageRecords.model,
      mode: usageRecords.mode,
      endpoint: usageRecords.endpoint,
      project: projects.name,
      api_key: apiKeys.name,
      status: usageRecords.status,
      questions: usageRecords.questions,
      input_tokens: usageRecords.input_tokens,
      cost_micros: usageRecords.cost_micros,
      latency_ms: usageRecords.latency_ms,
      request_id: usageRecords.request_id,
    })
    .from(usageRecords)
    .innerJoin(projects, eq(projects.id, usageRecords.project_id))
    .innerJoin(apiKeys, eq(apiKeys.id, usageRecords.api_key_id))
    .where(and(...conditions))
    .orderBy(desc(usageRecords.time_ms), desc(usageRecords.request_id))
    .limit(rows)
    .all();
}

function lineOf(row: Row): string {
  return csvLine([
    new Date(row.time_ms).toISOString(),
    row.model,
    row.mode,
    row.endpoint,
    row.project,
    row.api_key,
    row.status,
    row.questions,
    row.input_tokens,
    formatDollars(row.cost_micros),
    row.latency_ms,
    row.request_id,
  ]);
}
