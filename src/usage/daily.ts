import { setImmediate } from 'node:timers/promises';
import { formatDollars } from '../contract/money.ts';
import type { DaySpan, DayTotal, RolledUp, UsageFilter, UsageRecords } from '../store/usage-records.ts';
import { dayBefore, dayOf } from '../time/days.ts';
import { csvLine } from './csv.ts';

/** The columns of the daily totals. */
const DAILY_COLUMNS = [
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
  yield csvLine(DAILY_COLUMNS);
  const used = await usage.daysWithUsage(filter.organization_id);
  if (used === undefined) return;
  const asked = daysOf(filter);
  const first_day = later(used.first_day, asked.first_day);
  for (let day = earlier(used.last_day, asked.last_day); day >= first_day; day = dayBefore(day)) {
    const totals = await usage.totalsOfDay(day, filter);
    if (totals.length > 0) yield totals.map((total) => lineOf(day, total)).join('');
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

function lineOf(day: string, row: DayTotal): string {
  return csvLine([
    day,
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
