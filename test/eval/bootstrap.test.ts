import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { bootstrap, estimateMetrics, quantile } from '../../src/eval/bootstrap.ts';
import { accuracy } from '../../src/eval/metrics.ts';
import { seededRandom, shuffled } from '../../src/eval/random.ts';
import { noulPrediction } from './support.ts';

describe('random', () => {
  test('the same seed gives the same numbers, from 0 to 1 and evenly', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const draw = () => {
          const random = seededRandom(seed);
          return Array.from({ length: 2000 }, () => random());
        };
        const numbers = draw();
        expect(draw()).toEqual(numbers);
        expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
        expect(numbers.reduce((sum, number) => sum + number, 0) / numbers.length).toBeWithin(0.46, 0.54);
      }),
      { numRuns: 20, verbose: 1 },
    );
  });

  test('shuffling loses nothing, adds nothing, and gives every order as often', () => {
    const random = seededRandom(1);
    const counts = new Map<string, number>();
    for (let draw = 0; draw < 6000; draw += 1) {
      const order = shuffled(['a', 'b', 'c'], random).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(['abc', 'acb', 'bac', 'bca', 'cab', 'cba']);
    for (const count of counts.values()) expect(count).toBeWithin(880, 1120);
  });
});

test('a quantile lies between its neighbours', () => {
  expect([0, 0.25, 0.5, 1].map((at) => quantile([1, 2, 4], at))).toEqual([1, 1.5, 2, 4]);
});

describe('an interval', () => {
  const options = (seed: number) => ({ resamples: 400, random: seededRandom(seed) });

  test('holds the value, and the same seed gives the same one', () => {
    const predictions = Array.from({ length: 60 }, (_, index) =>
      noulPrediction((index % 10) / 10, index % 3 === 0, { record: `${index}` }),
    );
    const estimates = estimateMetrics(predictions, options(3));
    expect(estimateMetrics(predictions, options(3))).toEqual(estimates);
    for (const { value, low, high } of [
      estimates.accuracy,
      estimates.brier,
      estimates.negative_log_likelihood,
    ]) {
      expect(value).toBeWithin(low, high);
      expect(high).toBeGreaterThan(low);
    }
  });

  test('holds the truth about as often as it says', () => {
    const random = seededRandom(11);
    let held = 0;
    for (let run = 0; run < 120; run += 1) {
      const predictions = Array.from({ length: 80 }, (_, index) =>
        noulPrediction(0.9, random() < 0.7, { record: `${index}` }),
      );
      const { low = 1, high = 0 } =
        bootstrap(predictions, { accuracy }, { resamples: 200, random }).get('accuracy') ?? {};
      held += Number(low <= 0.7 && 0.7 <= high);
    }
    expect(held / 120).toBeWithin(0.87, 1);
  });

  test('is wider where questions are about the same records', () => {
    const width = (records: number) => {
      const predictions = Array.from({ length: 120 }, (_, index) =>
        noulPrediction(0.9, index % records < records / 2, { record: `${index % records}` }),
      );
      const { low = 0, high = 0 } = bootstrap(predictions, { accuracy }, options(5)).get('accuracy') ?? {};
      return high - low;
    };
    expect(width(12)).toBeGreaterThan(1.8 * width(120));
  });
});
