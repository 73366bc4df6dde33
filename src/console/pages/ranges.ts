import { DAY_MS } from '../../time/clock.ts';
import { isDay, startOfDay_ms, TIME_MAX_MS } from '../../time/days.ts';

export const PRESETS = [
  { value: 'day', label: '24 h' },
  { value: 'week', label: '7 days' },
  { value: 'month', label: '30 days' },
  { value: 'quarter', label: '90 days' },
] as const;

export type Preset = (typeof PRESETS)[number]['value'];

const PRESET_DAYS: Readonly<Record<Preset, number>> = { day: 1, week: 7, month: 30, quarter: 90 };

/** A span of time, its end excluded. */
export interface DateRange {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly preset: Preset | 'all' | 'days';
}

/** Returns the span of a preset that ends now. */
export function rangeOfPreset(preset: Preset, now_ms: number): DateRange {
  return { preset, from_ms: now_ms - PRESET_DAYS[preset] * DAY_MS, to_ms: now_ms };
}

/** Returns all time until now. */
export function rangeOfAll(now_ms: number): DateRange {
  return { preset: 'all', from_ms: 0, to_ms: now_ms };
}

/**
 * Returns whole UTC days, both included, as `YYYY-MM-DD`. Null for an invalid day, for one that the API does not take, or
 * if the last is before the first.
 */
export function rangeOfDays(first: string, last: string): DateRange | null {
  if (!isDay(first) || !isDay(last)) return null;
  const range = { from_ms: startOfDay_ms(first), to_ms: startOfDay_ms(last) + DAY_MS };
  return isSpan(range) ? { preset: 'days', ...range } : null;
}

/** Returns true for a span of time that the API takes, its end excluded. */
export function isSpan({ from_ms, to_ms }: Pick<DateRange, 'from_ms' | 'to_ms'>): boolean {
  return from_ms >= 0 && to_ms > from_ms && to_ms <= TIME_MAX_MS;
}
