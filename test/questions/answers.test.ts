import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { jsonValueOf } from '../../src/json/json-value.ts';
import { writeJson } from '../../src/json/write-json.ts';
import { choiceAnswer } from '../../src/questions/choice.ts';
import { noulAnswer } from '../../src/questions/noul.ts';
import { roundToSumOne, sigmoid, softmax } from '../../src/questions/probabilities.ts';
import { scoreAnswer } from '../../src/questions/score.ts';

const scores = (minLength: number) =>
  fc.array(fc.double({ min: -60, max: 60, noNaN: true }), { minLength, maxLength: 255 });

/** The exact sum of numbers that have at most six decimals, in millionths. */
const millionths = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + Math.round(value * 1_000_000), 0);

describe('probabilities', () => {
  test('rounded probabilities sum to exactly one and keep their order', () => {
    fc.assert(
      fc.property(scores(2), (values) => {
        const exact = softmax(values);
        const rounded = roundToSumOne(exact);
        expect(millionths(rounded)).toBe(1_000_000);
        expect(Math.abs(rounded.reduce((sum, value) => sum + value, 0) - 1)).toBeLessThan(1e-9);
        exact.forEach((left, i) => {
          exact.forEach((right, j) => {
            if (left > right) expect(rounded[i] ?? 0).toBeGreaterThanOrEqual(rounded[j] ?? 0);
          });
        });
      }),
      { numRuns: 100, verbose: 1 },
    );
  });

  test('a larger one is never rounded below a smaller one, not even by a last bit', () => {
    const exact = softmax([0, 0.012067636424754833, -6.852157730108389e-17, 0, 0, 0, 0]);
    const rounded = roundToSumOne(exact);
    expect(millionths(rounded)).toBe(1_000_000);
    expect(rounded[0]).toBeGreaterThanOrEqual(rounded[2] ?? 1);
  });

  test('a score that is not a number is no answer', () => {
    expect(() => roundToSumOne(softmax([1, Number.NaN]))).toThrow(RangeError);
    expect(() => noulAnswer(sigmoid(Number.NaN), null)).toThrow(RangeError);
  });
});

describe('noul', () => {
  test('is never between 0.199 and 0.801, and its decision is the comparison with the threshold', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (probability, threshold) => {
          const answer = noulAnswer(probability, threshold);
          expect(answer.noul <= 0.199 || answer.noul >= 0.801).toBe(true);
          expect(answer.noul >= 0.5).toBe(probability >= 0.5);
          expect(answer.threshold).toBe(threshold);
          expect(answer.decision).toBe(answer.noul >= threshold);
        },
      ),
      { verbose: 1 },
    );
  });

  const rows: readonly (readonly [probability: number, noul: number])[] = [
    [0, 0],
    [0.25, 0.0995],
    [0.5, 0.801],
    [0.75, 0.9005],
    [1, 1],
  ];
  test.each(rows)('probability %p is given as %p', (probability, noul) => {
    expect(noulAnswer(probability, null)).toEqual({ type: 'noul', noul });
  });
});

describe('choice', () => {
  test('is an option with the largest returned probability', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string(), { minLength: 2, maxLength: 40 }),
        fc.infiniteStream(fc.double({ min: -9, max: 9, noNaN: true })),
        (ids, stream) => {
          const answer = choiceAnswer(ids, softmax([...stream.take(ids.length)]));
          expect(answer.probabilities.names).toEqual(ids);
          const best = Math.max(...answer.probabilities.values);
          expect(answer.probabilities.get(answer.choice)).toBe(best);
        },
      ),
      { verbose: 1 },
    );
  });

  const rows: readonly (readonly [name: string, probabilities: readonly number[], confidence: number])[] = [
    ['a uniform spread', [0.25, 0.25, 0.25, 0.25], 0],
    ['certainty', [0, 1], 1],
    ['three quarters of two', [0.75, 0.25], 0.5],
  ];
  test.each(rows)('confidence of %s', (_name, probabilities, confidence) => {
    const ids = probabilities.map((_, index) => `option ${index}`);
    expect(choiceAnswer(ids, probabilities).confidence).toBe(confidence);
  });

  test('is the first of equal options', () => {
    expect(choiceAnswer(['a', 'b'], [0.5, 0.5]).choice).toBe('a');
  });

  test('option ids may be any JSON key', () => {
    const answer = choiceAnswer(['__proto__', 'constructor', ''], [0.2, 0.5, 0.3]);
    expect(writeJson(answer.probabilities)).toBe('{"__proto__":0.2,"constructor":0.5,"":0.3}');
  });
});

describe('score', () => {
  test('is the weighted mean of the returned probabilities, from 0 to the last level', () => {
    fc.assert(
      fc.property(scores(2), (values) => {
        const levels = values.map((_, index) => `level ${index}`);
        const answer = scoreAnswer(levels, softmax(values));
        const mean = answer.probabilities.values.reduce((sum, p, level) => sum + level * p, 0);
        expect(Math.abs(answer.score - mean)).toBeLessThan(1e-6);
        expect(answer.score).toBeGreaterThanOrEqual(0);
        expect(answer.score).toBeLessThanOrEqual(levels.length - 1);
        expect(answer.confidence).toBe(Math.max(...answer.probabilities.values));
      }),
      { numRuns: 200, verbose: 1 },
    );
  });

  test('the legend is what was sent, whatever JSON that is, and the empty string for null', () => {
    const levels = [' low ', null, jsonValueOf({ a: [1] })];
    expect(writeJson(scoreAnswer(levels, [0.2, 0.3, 0.5]).legend)).toBe('{"0":" low ","1":"","2":{"a":[1]}}');
  });
});
