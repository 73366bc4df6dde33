import type { Grouping } from '../../../store/groupings.ts';
import { api, call } from '../client.ts';
import { chosenZone } from '../time-zone.ts';
import type { UsageQuery } from './view.ts';

export const GROUPINGS = [
  { value: 'status', label: 'By status' },
  { value: 'project', label: 'By project' },
  { value: 'key', label: 'By key' },
  { value: 'model', label: 'By model' },
  { value: 'mode', label: 'By mode' },
] as const satisfies readonly { readonly value: Grouping; readonly label: string }[];

/**
 * Loads usage over time, in buckets of minutes and hours of the chosen zone, or of UTC days. `fits_data` leaves out long
 * times without requests before and after them.
 */
export async function loadSeries(
  organization_id: string,
  asked: UsageQuery,
  { group_by, fits_data }: { readonly group_by?: Grouping; readonly fits_data: boolean },
) {
  const query = {
    ...asked,
    offset_minutes: chosenZone() === 'UTC' ? 0 : -new Date().getTimezoneOffset(),
    ...(group_by === undefined ? {} : { group_by }),
    ...(fits_data ? ({ fits_data: 'true' } as const) : {}),
  };
  return await call(api.organizations({ organization_id }).usage.series.get({ query }));
}

export type UsageSeries = Awaited<ReturnType<typeof loadSeries>>;
export type UsageSums = UsageSeries['totals'];

/** Returns the number of requests without an answer. */
export function errorsOf({ requests, statuses }: Pick<UsageSums, 'requests' | 'statuses'>): number {
  return requests - (statuses.find(({ status }) => status === 200)?.requests ?? 0);
}

/** Returns the share of the requests without an answer, from 0 to 1; null when there are none. */
export function errorShareOf(sums: Pick<UsageSums, 'requests' | 'statuses'>): number | null {
  return sums.requests === 0 ? null : errorsOf(sums) / sums.requests;
}
