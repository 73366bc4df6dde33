import { setImmediate } from 'node:timers/promises';
import { formatDollars } from '../contract/money.ts';
import type { DaySpan, DayTotal, RolledUp, UsageFilter, UsageRecords } from '../store/usage-records.ts';
import { dayBefore, dayOf } from '../time/days.ts';
import { type CsvColumn, csvHeader, csvRow } from './csv.ts';

/** The columns of the daily totals. */
const DAILY_COLUMNS: readonly CsvColumn<DayTotal & { readonly day: string }>[] = [
  ['day_utc', ({ day }) => day],
  ['organization', ({ organization }) => organization],
  ['project', ({ project }) => project],
  ['api_key', ({ api_key }) => api_key],
  ['model', ({ model }) => model],
  ['mode', ({ mode }) => mode],
  ['endpoint', ({ endpoint }) => endpoint],
  ['status', ({ status }) => status],
  ['requests', ({ requests }) => requests],
  ['questions', ({ questions }) => questions],
  ['input_tokens', ({ input_tokens }) => input_tokens],
  ['cost_usd', ({ cost_micros }) => formatDollars(cost_micros)],
];

/**
 * Yields the usage as CSV text (RFC 4180), in pieces of whole lines, newest day first. After the header,
 * there is a line for each UTC day, organization, project, key, model, mode, endpoint and status. Rolled-up
 * requests are included; a time within a day stands for the whole day. Reads day by day, outside of any
 * transaction, and lets other work run in between. Throws as the store does.
 */
export async function* dailyUsage(
  usage: Pick<UsageRecords, 'daysWithUsage' | 'totalsOfDay'>,
  filter: Omit<UsageFilter, 'request_id'>,
): AsyncGenerator<string, void, undefined> {
  yield csvHeader(DAILY_COLUMNS);
  const used = await usage.daysWithUsage(filter.organization_id);
  if (used === undefined) return;
  const asked = daysOf(filter);
  const first_day = later(used.first_day, asked.first_day);
  for (let day = earlier(used.last_day, asked.last_day); day >= first_day; day = dayBefore(day)) {
    const totals = await usage.totalsOfDay(day, filter);
    if (totals.length > 0) yield totals.map((total) => csvRow(DAILY_COLUMNS, { day, ...total })).join('');
    await setImmediate();
  }
}

/** Looks up the usage that an export lacks, because it was rolled up; undefined when it lacks none. */
export function rolledUpUsage(
  usage: Pick<UsageRecords, 'rolledUp'>,
  filter: Omit<UsageFilter, 'request_id'>,
): Promise<RolledUp | undefined> {
  return usage.rolledUp(filter, daysOf(filter));
}

function daysOf({ from_ms, to_ms }: Pick<UsageFilter, 'from_ms' | 'to_ms'>): Partial<DaySpan> {
  return {
    ...(from_ms === undefined ? {} : { first_day: dayOf(from_ms) }),
    ...(to_ms === undefined ? {} : { last_day: dayOf(to_ms - 1) }),
  };
}

function later(day: string, other: string | undefined): string {
  return other !== undefined && other > day ? other : day;
}

function earlier(day: string, other: string | undefined): string {
  return other !== undefined && other < day ? other : day;
}
