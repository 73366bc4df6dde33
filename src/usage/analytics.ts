import type { Actor } from '../access/actor.ts';
import { requirePermission } from '../access/permissions.ts';
import type { Store } from '../store/store.ts';
import type {
  KeySpend,
  SeriesQuestion,
  UsageReader,
  UsageSeries,
  UsageValues,
} from '../store/usage-reader.ts';
import type { NamedUsageRow, UsageFilter, UsagePlace } from '../store/usage-records.ts';
import type { Clock } from '../time/clock.ts';
import { dayOf, endOfDay_ms, startOfDay_ms } from '../time/days.ts';
import { startOfMonth_ms } from '../time/month.ts';
import { requireSpan } from './buckets.ts';
import { exportUsage } from './export.ts';

/** The parts of the rules that show usage. */
export interface AnalyticsContext {
  readonly store: Pick<Store, 'accounts' | 'usage'>;
  readonly reader: UsageReader;
  readonly clock: Clock;
}

/**
 * A filter for requests of one organization. Every view shows the same requests as the export of its filter.
 */
export interface OrganizationUsageFilter extends UsageFilter {
  readonly organization_id: string;
}

/** A page of usage rows, and the start of the next one; null after the last. */
export interface UsagePage {
  readonly items: readonly NamedUsageRow[];
  readonly next: UsagePlace | null;
}

/**
 * Returns usage over time, in buckets whose width depends on the span: minutes and hours at local times of
 * the offset, or UTC days. The span begins by default with the first day that has usage, and ends by default
 * now. Rejects with `not_found`, and with `RangeError` for an invalid span or offset.
 */
export async function usageSeries(
  context: AnalyticsContext,
  actor: Actor,
  given: OrganizationUsageFilter &
    Pick<SeriesQuestion, 'fits_data' | 'group_by'> & { readonly offset_minutes?: number },
): Promise<UsageSeries> {
  await requirePermission(context.store, actor, given.organization_id, 'see');
  const { offset_minutes = 0, ...filter } = given;
  const span = { ...(await spanOf(context, filter)), offset_minutes };
  requireSpan(span);
  return context.reader.series({ ...filter, ...span });
}

/**
 * Returns requests, newest first, at most `limit`: those after a place, or the newest. Rolled-up requests
 * have no rows. Rejects with `not_found`.
 */
export async function usagePage(
  { store, reader }: AnalyticsContext,
  actor: Actor,
  filter: OrganizationUsageFilter,
  { limit, after }: { readonly limit: number; readonly after?: UsagePlace | undefined },
): Promise<UsagePage> {
  await requirePermission(store, actor, filter.organization_id, 'see');
  const rows = await reader.page(filter, limit + 1, after);
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last === undefined ? null : { time_ms: last.time_ms, request_id: last.request_id } };
}

/** Returns the models, modes, endpoints and statuses of the usage in that time. Rejects with `not_found`. */
export async function usageValues(
  { store, reader }: AnalyticsContext,
  actor: Actor,
  { organization_id, from_ms, to_ms }: Pick<OrganizationUsageFilter, 'organization_id' | 'from_ms' | 'to_ms'>,
): Promise<UsageValues> {
  await requirePermission(store, actor, organization_id, 'see');
  return reader.values({ organization_id, from_ms, to_ms });
}

/** Returns the cost of each key's requests in the present UTC month. Rejects with `not_found`. */
export async function keySpendThisMonth(
  { store, reader, clock }: AnalyticsContext,
  actor: Actor,
  organization_id: string,
): Promise<readonly KeySpend[]> {
  await requirePermission(store, actor, organization_id, 'see');
  return reader.spendByKey(organization_id, startOfMonth_ms(clock.now_ms()));
}

/**
 * Exports the same requests as CSV text, in pieces (contract: the usage export's columns, newest first, at
 * most 100,000 rows). Rejects with `not_found` before the first piece.
 */
export async function exportOrganizationUsage(
  { store, reader }: AnalyticsContext,
  actor: Actor,
  filter: OrganizationUsageFilter,
): Promise<AsyncGenerator<string, void, undefined>> {
  await requirePermission(store, actor, filter.organization_id, 'see');
  return exportUsage(reader, filter);
}

/** Returns the requested times, by default those with usage. */
async function spanOf(
  { store, clock }: AnalyticsContext,
  { organization_id, from_ms, to_ms }: OrganizationUsageFilter,
): Promise<{ readonly from_ms: number; readonly to_ms: number }> {
  if (from_ms !== undefined && to_ms !== undefined) return { from_ms, to_ms };
  const now_ms = clock.now_ms();
  const used = await store.usage.daysWithUsage(organization_id);
  // After the wall clock was set back, there may be usage of the future.
  const end_ms = used !== undefined && used.last_day > dayOf(now_ms) ? endOfDay_ms(used.last_day) : now_ms;
  const until_ms = to_ms ?? Math.max(end_ms, from_ms ?? end_ms) + 1;
  const first_ms = startOfDay_ms(used?.first_day ?? dayOf(until_ms - 1));
  return { from_ms: from_ms ?? Math.min(first_ms, until_ms - 1), to_ms: until_ms };
}
