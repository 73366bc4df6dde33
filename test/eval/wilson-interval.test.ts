import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { wilsonInterval } from '../../src/eval/wilson-interval.ts';

const trials = fc
  .integer({ min: 1, max: 100_000 })
  .chain((count) => fc.record({ count: fc.constant(count), successes: fc.integer({ min: 0, max: count }) }));

test('the interval is that of the literature', () => {
  // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20 and 1 of 29 by the score method.
  for (const [successes, count, low, high] of [
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ] as const) {
    const interval = wilsonInterval(successes, count);
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  }
  expect(wilsonInterval(0, 0)).toEqual({ low: 0, high: 1 });
});

test('it contains the observed share, stays within 0 to 1, and mirrors', () => {
  fc.assert(
    fc.property(trials, ({ successes, count }) => {
      const { low, high } = wilsonInterval(successes, count);
      const share = successes / count;
      expect(low).toBeGreaterThanOrEqual(0);
      expect(low).toBeLessThanOrEqual(share);
      expect(high).toBeGreaterThanOrEqual(share);
      expect(high).toBeLessThanOrEqual(1);
      const mirrored = wilsonInterval(count - successes, count);
      expect(mirrored.low).toBeCloseTo(1 - high, 9);
      expect(mirrored.high).toBeCloseTo(1 - low, 9);
    }),
  );
});

test('ten times as many trials make it narrower', () => {
  fc.assert(
    fc.property(trials, ({ successes, count }) => {
      const width = ({ low, high }: ReturnType<typeof wilsonInterval>) => high - low;
      expect(width(wilsonInterval(10 * successes, 10 * count))).toBeLessThan(
        width(wilsonInterval(successes, count)),
      );
    }),
  );
});
