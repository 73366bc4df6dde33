import { describe, expect, test } from 'bun:test';
import { daysPassed, reachSentence, type TierGoal } from '../../src/console/pages/billing/next-tier.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 5, 15, 12);
const DOLLAR_MICROS = 1_000_000;

const goal = (changes: Partial<TierGoal>): TierGoal => ({
  tier: 2,
  days: 7,
  missing_micros: 0,
  days_passed_at_ms: NOW_MS,
  ...changes,
});

describe('when the next tier is reached', () => {
  test.each([
    [
      'nothing is paid, and there is nothing to wait for',
      { tier: 1, days: 0, missing_micros: 5 * DOLLAR_MICROS, days_passed_at_ms: null },
      'Pay $5.00 more to reach Tier 1 at once.',
    ],
    [
      'nothing is paid, and the days have not begun',
      { missing_micros: 50 * DOLLAR_MICROS, days_passed_at_ms: null },
      'Tier 2 is reached 7 days after the first payment, once $50.00 in all is paid.',
    ],
    [
      'the days pass in this millisecond, and money is missing',
      { missing_micros: 1 },
      'Pay $0.000001 more to reach Tier 2 at once.',
    ],
    ['the days pass in this millisecond', {}, 'Tier 2 is reached.'],
    [
      'the days pass in the next millisecond',
      { days_passed_at_ms: NOW_MS + 1 },
      'Tier 2 comes by itself on Jun 15, 2026: enough is paid.',
    ],
    [
      'days and the last micro-dollar are missing',
      { days_passed_at_ms: NOW_MS + 1, missing_micros: 1 },
      'Tier 2 can be reached on Jun 15, 2026 at the earliest, once $0.000001 more is paid.',
    ],
  ] as const)('%s', (_, changes, sentence) => {
    expect(reachSentence(goal(changes), NOW_MS, 'UTC')).toBe(sentence);
  });
});

test('the day of the next tier is that of the chosen zone', () => {
  const before_midnight = goal({ days_passed_at_ms: Date.UTC(2026, 5, 30, 23, 30) });
  const dayIn = (time_zone: string) =>
    /on (.+?, 2026)/.exec(reachSentence(before_midnight, NOW_MS, time_zone))?.[1];
  expect(['UTC', 'Pacific/Auckland', 'America/St_Johns'].map(dayIn)).toEqual([
    'Jun 30, 2026',
    'Jul 1, 2026',
    'Jun 30, 2026',
  ]);
});

test.each([
  ['before the first payment', null, 0],
  ['at the first payment', NOW_MS + 7 * DAY_MS, 0],
  ['a millisecond before the first day is over', NOW_MS + 6 * DAY_MS + 1, 0],
  ['when the first day is over', NOW_MS + 6 * DAY_MS, 1],
  ['a millisecond before the last day is over', NOW_MS + 1, 6],
  ['when the last day is over', NOW_MS, 7],
  ['long after', NOW_MS - 100 * DAY_MS, 7],
] as const)('days since the first payment count whole: %s', (_, days_passed_at_ms, days) => {
  expect(daysPassed(goal({ days_passed_at_ms }), NOW_MS)).toBe(days);
});
