import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  formatBytes,
  formatCompact,
  formatCost,
  formatCount,
  formatDate,
  formatDuration,
  formatExact,
  formatMoney,
  formatMoneyShort,
  formatMoneyTick,
  formatNumber,
  formatPercent,
  formatRelative,
  formatTicks,
} from '../../src/console/pages/format.ts';
import { rangeOfDays, rangeOfPreset } from '../../src/console/pages/ranges.ts';
import { parseDollars } from '../../src/contract/money.ts';
import { dayOf } from '../../src/time/days.ts';

const NOW_MS = Date.UTC(2026, 2, 5, 14, 3, 7);
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

describe('money', () => {
  test.each([
    [0, '$0.000000'],
    [150, '$0.000150'],
    [12_345_678, '$12.345678'],
  ])('a request that cost %d micro-dollars cost %s', (micros, text) => expect(formatCost(micros)).toBe(text));

  test.each([
    [150, '$0.00015'],
    [87_654_321, '$87.65'],
  ])('on an axis, %d micro-dollars are %s', (micros, text) => expect(formatMoneyTick(micros)).toBe(text));

  test.each([
    [0, '$0.00'],
    [12_500_000, '$12.50'],
    [150, '$0.000150'],
    [-3_000_000, '-$3.00'],
    [1_234_567_890_000, '$1,234,567.89'],
    [12_345_678, '$12.345678'],
  ])('%d micro-dollars are %s', (micros, text) => expect(formatMoney(micros)).toBe(text));

  test('is exact for every amount', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999_999_999_999_999 }), (micros) => {
        expect(parseDollars(formatMoney(micros).replace(/[$,]/g, ''))).toBe(micros);
      }),
    );
  });

  test.each([
    [0, '$0.00'],
    [87_654_321, '$87.65'],
    [1_234_567_890, '$1,234.57'],
    [150, '<$0.01'],
    [-150, '-<$0.01'],
    [10_000, '$0.01'],
    [-2_000_000, '-$2.00'],
  ])('in short, %d micro-dollars are %s', (micros, text) => expect(formatMoneyShort(micros)).toBe(text));
});

test('numbers', () => {
  expect(formatNumber(1_234_567)).toBe('1,234,567');
  expect(formatCompact(1_234)).toBe('1.2K');
  expect(formatPercent(0.125)).toBe('12.5%');
  expect(formatPercent(1, 0)).toBe('100%');
  expect(formatBytes(512)).toBe('512 B');
  expect(formatBytes(1_200)).toBe('1.2 kB');
  expect(formatCount(1, 'key')).toBe('1 key');
  expect(formatCount(2_000, 'key')).toBe('2,000 keys');
});

test.each([
  [0.5, '0.5 ms'],
  [85, '85 ms'],
  [1_250, '1.25 s'],
  [3 * MINUTE_MS, '3 min'],
  [2 * 60 * MINUTE_MS, '2 h'],
  [5 * DAY_MS, '5 d'],
])('a length of %d ms is %s', (duration_ms, text) => expect(formatDuration(duration_ms)).toBe(text));

test.each([
  [0, 'just now'],
  [-59_000, 'just now'],
  [-5 * MINUTE_MS, '5 minutes ago'],
  [-DAY_MS, 'yesterday'],
  [2 * DAY_MS, 'in 2 days'],
  [-60 * MINUTE_MS, '1 hour ago'],
])('%d ms from now is %s', (distance_ms, text) =>
  expect(formatRelative(NOW_MS + distance_ms, NOW_MS)).toBe(text),
);

test('times name their zone, and long ago is a date', () => {
  expect(formatExact(NOW_MS, 'UTC')).toBe('Mar 5, 2026, 14:03:07 UTC');
  expect(formatDate(NOW_MS, 'UTC')).toBe('Mar 5, 2026');
  expect(formatRelative(NOW_MS - 40 * DAY_MS, NOW_MS)).toContain('2026');
});

test('the times of a chart are those of the zone, with the day where it is another one', () => {
  const evening_ms = Date.UTC(2026, 2, 5, 23, 30);
  const hours = [0, 1, 2].map((hour) => evening_ms + hour * 60 * MINUTE_MS);
  expect(formatTicks(hours, 60 * MINUTE_MS, 'UTC')).toEqual(['23:30\nMar 5', '00:30\nMar 6', '01:30']);
  expect(formatTicks(hours, 60 * MINUTE_MS, 'Asia/Tokyo')).toEqual(['08:30\nMar 6', '09:30', '10:30']);
  expect(formatTicks([evening_ms], 10_000, 'UTC')).toEqual(['23:30:00\nMar 5']);
  expect(formatTicks([NOW_MS, NOW_MS + DAY_MS], DAY_MS, 'UTC')).toEqual(['Mar 5', 'Mar 6']);
});

test('a span of days has both of its ends, and no other', () => {
  const range = rangeOfDays('2026-03-01', '2026-03-05');
  expect(range).toEqual({ preset: 'days', from_ms: Date.UTC(2026, 2, 1), to_ms: Date.UTC(2026, 2, 6) });
  expect(dayOf((range?.to_ms ?? 0) - 1)).toBe('2026-03-05');
  expect(rangeOfDays('2026-03-05', '2026-03-01')).toBeNull();
  expect(rangeOfDays('', '2026-03-01')).toBeNull();
  expect(rangeOfDays('2026-02-30', '2026-03-05')).toBeNull();
  expect(rangeOfPreset('week', NOW_MS)).toEqual({
    preset: 'week',
    from_ms: NOW_MS - 7 * DAY_MS,
    to_ms: NOW_MS,
  });
});
