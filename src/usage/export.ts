import { setImmediate } from 'node:timers/promises';
import { formatDollars } from '../contract/money.ts';
import type { NamedUsageRow, UsageFilter, UsageRecords } from '../store/usage-records.ts';
import { type CsvColumn, csvHeader, csvRow } from './csv.ts';
import { EXPORT_ROWS_MAX } from './export-rows-max.ts';

/** The columns of the contract, in its order. */
const EXPORT_COLUMNS: readonly CsvColumn<NamedUsageRow>[] = [
  ['time_utc', ({ time_ms }) => new Date(time_ms).toISOString()],
  ['model', ({ model }) => model],
  ['mode', ({ mode }) => mode],
  ['endpoint', ({ endpoint }) => endpoint],
  ['project', ({ project }) => project],
  ['api_key', ({ api_key }) => api_key],
  ['status', ({ status }) => status],
  ['questions', ({ questions }) => questions],
  ['input_tokens', ({ input_tokens }) => input_tokens],
  ['cost_usd', ({ cost_micros }) => formatDollars(cost_micros)],
  ['latency_ms', ({ latency_ms }) => latency_ms],
  ['request_id', ({ request_id }) => request_id],
];

const PAGE_ROWS = 500;

/** The most rows of an export, and what hears that older requests are left out. */
export interface ExportBounds {
  readonly rows_max?: number;
  /** Gets the time of the last row. */
  readonly onCut?: (last_ms: number) => void;
}

/**
 * Yields the usage export as CSV text (RFC 4180), in pieces of whole lines. After the header, there is one
 * line a request, newest first, at most `rows_max`. Reads page by page, outside of any transaction, and lets
 * other work run in between. Neither memory nor the time of other requests depends on its length. Throws as
 * the store does.
 */
export async function* exportUsage(
  usage: Pick<UsageRecords, 'page'>,
  filter: UsageFilter,
  { rows_max = EXPORT_ROWS_MAX, onCut }: ExportBounds = {},
): AsyncGenerator<string, void, undefined> {
  yield csvHeader(EXPORT_COLUMNS);
  let left = rows_max;
  let last: NamedUsageRow | undefined;
  while (left > 0) {
    const rows = await usage.page(filter, Math.min(left, PAGE_ROWS), last);
    last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => csvRow(EXPORT_COLUMNS, row)).join('');
    left -= rows.length;
    await setImmediate();
  }
  if (onCut === undefined || last === undefined) return;
  if ((await usage.page(filter, 1, last)).length > 0) onCut(last.time_ms);
}
