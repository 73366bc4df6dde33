import type { SeriesQuestion } from '../store/usage-reader.ts';
import type { UsageRow } from '../store/usage-row.ts';
import { bucketsOf } from './buckets.ts';
import { noonOf_ms } from './rolled-up-days.ts';
import { UsageGroups } from './usage-groups.ts';
import { UsageSum } from './usage-sum.ts';

/** The rolled-up requests of one status on one day. */
export interface RolledUpDay extends Pick<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros'> {
  readonly day: string;
  readonly requests: number;
  /** The value of the column by which requests are grouped; null where nothing groups them. */
  readonly grouped: string | null;
}

/** The buckets of a series, with their sums so far. */
export interface SummedBuckets {
  readonly width_ms: number;
  readonly first_ms: number;
  readonly groups: UsageGroups;
  readonly buckets: readonly { readonly start_ms: number; readonly sum: UsageSum }[];
}

/**
 * Returns the buckets of a question, with the rolled-up days, each at its noon, but without requests yet.
 * Throws as `bucketsOf`.
 */
export function bucketsWithDays(question: SeriesQuestion, days: readonly RolledUpDay[]): SummedBuckets {
  const { width_ms, starts_ms } = bucketsOf(question, days.length > 0, question.fits_data);
  const [first_ms = question.from_ms] = starts_ms;
  const buckets = starts_ms.map((start_ms) => ({ start_ms, sum: new UsageSum() }));
  const groups = new UsageGroups(buckets.length);
  for (const day of days) {
    const bucket = Math.floor((noonOf_ms(day.day) - first_ms) / width_ms);
    buckets[bucket]?.sum.addRolledUp(day);
    if (day.grouped !== null) groups.add(day.grouped, bucket, day);
  }
  return { width_ms, first_ms, groups, buckets };
}
