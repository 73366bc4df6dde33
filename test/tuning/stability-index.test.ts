import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { seededRandom } from '../../src/eval/random.ts';
import {
  type AnswerDistribution,
  STABILITY_INDEX_MAX,
  stabilityIndex,
} from '../../src/tuning/stability-index.ts';
import { propertySeed } from '../ledger/support.ts';

/** Counts of two samples over the same classes, of which many have no answer in one of them. */
const samples = fc
  .array(fc.tuple(count(), count()), { minLength: 2, maxLength: 255 })
  .map(
    (counts) =>
      [distribution(counts.map(([one]) => one)), distribution(counts.map(([, other]) => other))] as const,
  );

function count() {
  return fc.oneof(fc.constant(0), fc.nat({ max: 1_000_000 }));
}

function distribution(counts: readonly number[]): AnswerDistribution {
  const answers = counts.reduce((sum, one) => sum + one, 0);
  // A sample has at least one answer.
  if (answers === 0) return distribution(counts.map((_, at) => (at === 0 ? 1 : 0)));
  return { shares: counts.map((one) => one / answers), answers };
}

const options = { seed: propertySeed('stability index') };

describe('the stability index', () => {
  test('is a finite number that is not negative, and the same both ways', () => {
    fc.assert(
      fc.property(samples, ([one, other]) => {
        const index = stabilityIndex(one, other);
        expect(Number.isFinite(index)).toBe(true);
        expect(index).toBeGreaterThanOrEqual(0);
        expect(stabilityIndex(other, one)).toBeCloseTo(index, 9);
      }),
      options,
    );
  });

  test('is zero for equal shares, however many answers they are of', () => {
    fc.assert(
      fc.property(samples, ([one, other]) => {
        expect(stabilityIndex(one, { ...one, answers: other.answers })).toBe(0);
      }),
      options,
    );
  });

  test('is the usual sum over the shares where there are many answers', () => {
    const [one, other] = [
      [0.5, 0.3, 0.2],
      [0.2, 0.3, 0.5],
    ].map((shares) => ({ shares, answers: 1e9 }));
    if (one === undefined || other === undefined) throw new Error('There are two.');
    expect(stabilityIndex(one, other)).toBeCloseTo(2 * 0.3 * Math.log(0.5 / 0.2), 6);
  });

  test.each([
    [8, 100, 2],
    [40, 200, 3],
    [340, 1_000, 77],
  ])(
    'of samples of one distribution (%d and %d answers, %d classes) is above the limit by chance only',
    (labels, answers, classes) => {
      const random = seededRandom(1);
      const drawn = (size: number) => {
        const counts = Array.from({ length: classes }, () => 0);
        for (let at = 0; at < size; at += 1) {
          const drawn_class = Math.floor(random() * classes);
          counts[drawn_class] = (counts[drawn_class] ?? 0) + 1;
        }
        return distribution(counts);
      };
      const runs = 500;
      const above = Array.from({ length: runs }, () => stabilityIndex(drawn(labels), drawn(answers))).filter(
        (index) => index > STABILITY_INDEX_MAX,
      );
      expect(above.length / runs).toBeLessThan(0.05);
    },
  );

  test('sees a moved distribution through the chance of few labels', () => {
    const at_tuning = { shares: [0.5, 0.5], answers: 40 };
    expect(stabilityIndex(at_tuning, { shares: [0.9, 0.1], answers: 200 })).toBeGreaterThan(
      STABILITY_INDEX_MAX,
    );
    expect(stabilityIndex(at_tuning, { shares: [0.6, 0.4], answers: 200 })).toBeLessThan(STABILITY_INDEX_MAX);
  });
});
