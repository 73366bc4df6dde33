import { setImmediate } from 'node:timers/promises';
import { formatDollars } from '../contract/money.ts';
import type { NamedUsageRow, UsageFilter, UsageRecords } from '../store/usage-records.ts';
import { csvLine } from './csv.ts';
import { EXPORT_ROWS_MAX } from './export-rows-max.ts';

/** The columns of the contract, in its order. */
const EXPORT_COLUMNS = [
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

/**
 * Yields the usage export as CSV text (RFC 4180), in pieces of whole lines. After the header, there is one
 * line a request, newest first, at most `rows_max`. Reads page by page, outside of any transaction, and lets
 * other work run in between. Neither memory nor the time of other requests depends on its length. Throws as
 * the store does.
 */
export async function* exportUsage(
  usage: Pick<UsageRecords, 'page'>,
  filter: UsageFilter,
  rows_max = EXPORT_ROWS_MAX,
): AsyncGenerator<string, void, undefined> {
  yield csvLine(EXPORT_COLUMNS);
  let left = rows_max;
  let last: NamedUsageRow | undefined;
  while (left > 0) {
    const rows = await usage.page(filter, Math.min(left, PAGE_ROWS), last);
    last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map(lineOf).join('');
    left -= rows.length;
    await setImmediate();
  }
}

function lineOf(row: NamedUsageRow): string {
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
