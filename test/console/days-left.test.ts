import { expect, test } from 'bun:test';
import { daysLeft, daysLeftText, spentOf } from '../../src/console/pages/overview/days-left.ts';
import { bucketsOf } from '../../src/usage/buckets.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

test('credit lasts as many days as the recent rate says, whole days only', () => {
  expect(daysLeft(10_000_000, { cost_micros: 7_000_000, span_ms: 7 * DAY_MS })).toBe(10);
  expect(daysLeft(9_999_999, { cost_micros: 7_000_000, span_ms: 7 * DAY_MS })).toBe(9);
  expect(daysLeft(500_000, { cost_micros: 1_000_000, span_ms: DAY_MS })).toBe(0);
  expect(daysLeft(-1, { cost_micros: 1, span_ms: DAY_MS })).toBe(0);
  // The first minutes of an organization are no rate.
  expect(daysLeft(10_000_000, { cost_micros: 1_000_000, span_ms: 60_000 })).toBe(10);
  expect(daysLeft(10_000_000, { cost_micros: 0, span_ms: DAY_MS })).toBeNull();
});

test('the time before the first request is none of the rate, however small a part of the week it is', () => {
  const now_ms = Date.UTC(2026, 5, 15, 12);
  const week = { from_ms: now_ms - 7 * DAY_MS, to_ms: now_ms, offset_minutes: 0 };
  const seriesOf = (first_ms: number) => ({
    ...week,
    buckets: bucketsOf(week, false).starts_ms.map((start_ms) => ({
      start_ms,
      // One in each later hour, but for the last one.
      requests: Number(start_ms >= first_ms && start_ms < now_ms - HOUR_MS),
    })),
    totals: { cost_micros: 5 },
  });
  for (const hours of [2, 30, 100, 168]) {
    expect([hours, spentOf(seriesOf(now_ms - hours * HOUR_MS), now_ms)]).toEqual([
      hours,
      { cost_micros: 5, span_ms: hours * HOUR_MS },
    ]);
  }
  // A bucket of a day may begin before the week.
  const early = [{ start_ms: week.from_ms - HOUR_MS, requests: 1 }];
  expect(spentOf({ ...seriesOf(0), buckets: early }, now_ms).span_ms).toBe(7 * DAY_MS);
  expect(spentOf({ ...seriesOf(0), buckets: [] }, now_ms).span_ms).toBe(7 * DAY_MS);
});

test('the sentence has the right number of the noun', () => {
  expect([null, 0, 1, 12, 366].map(daysLeftText)).toEqual([
    'nothing spent in 7 days',
    'less than a day left at this rate',
    '1 day left at this rate',
    '12 days left at this rate',
    'over a year left at this rate',
  ]);
});
