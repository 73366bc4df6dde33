import { expect, test } from 'bun:test';
import { daysLeft, daysLeftText } from '../../src/console/pages/overview/days-left.ts';

const DAY_MS = 86_400_000;

test('credit lasts as many days as the recent rate says, whole days only', () => {
  expect(daysLeft(10_000_000, { cost_micros: 7_000_000, span_ms: 7 * DAY_MS })).toBe(10);
  expect(daysLeft(9_999_999, { cost_micros: 7_000_000, span_ms: 7 * DAY_MS })).toBe(9);
  expect(daysLeft(500_000, { cost_micros: 1_000_000, span_ms: DAY_MS })).toBe(0);
  expect(daysLeft(-1, { cost_micros: 1, span_ms: DAY_MS })).toBe(0);
  // The first minutes of an organization are no rate.
  expect(daysLeft(10_000_000, { cost_micros: 1_000_000, span_ms: 60_000 })).toBe(10);
  expect(daysLeft(10_000_000, { cost_micros: 0, span_ms: DAY_MS })).toBeNull();
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
