import type { UsedLimits } from '../limits/open-limits.ts';
import type { UsageRecords } from '../store/usage-records.ts';

/**
 * Returns the use of less than `span_ms` ago, oldest first, from which rate limits are rebuilt at the start.
 * Rows of the future were written before the wall clock was set back; the newest of them counts as written
 * now.
 */
export async function usedLimits(
  usage: Pick<UsageRecords, 'admittedAfter' | 'newestTime_ms'>,
  now_ms: number,
  span_ms: number,
): Promise<UsedLimits[]> {
  const newest_ms = Math.max(now_ms, (await usage.newestTime_ms()) ?? now_ms);
  const past = await usage.admittedAfter(now_ms - span_ms, now_ms);
  const future = await usage.admittedAfter(Math.max(now_ms, newest_ms - span_ms));
  return [...past, ...future]
    .map(({ organization_id, time_ms, status, input_tokens }) => ({
      organization_id,
      age_ms: (time_ms <= now_ms ? now_ms : newest_ms) - time_ms,
      input_tokens: status === 200 ? input_tokens : 0,
    }))
    .sort((left, right) => right.age_ms - left.age_ms);
}
