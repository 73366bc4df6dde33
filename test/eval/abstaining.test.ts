import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  AUTOMATIC_ERROR_MAX,
  abstaining,
  automaticAnswers,
  automaticBounds,
  automaticThreshold,
} from '../../src/eval/abstaining.ts';
import { confidenceOf, isCorrect, type Prediction } from '../../src/eval/predictions.ts';
import { noulAnswer } from '../../src/questions/noul.ts';
import { roundToSumOne } from '../../src/questions/probabilities.ts';
import { choicePrediction, noulPrediction, scorePrediction } from './support.ts';

/** So many nouls of one confidence, all answered right or all wrong. */
function nouls(count: number, confidence: number, is_right: boolean): Prediction[] {
  return Array.from({ length: count }, () => noulPrediction(confidence, is_right));
}

describe('on cases worked by hand', () => {
  test.each([
    ['no question', [], null],
    ['the only answer is right', nouls(1, 0.7, true), 0.7],
    ['the only answer is wrong', nouls(1, 0.7, false), null],
    ['the surest answer is wrong', [...nouls(1, 0.9, false), ...nouls(18, 0.8, true)], null],
    ['it is wrong, but made up for', [...nouls(1, 0.9, false), ...nouls(19, 0.8, true)], 0.8],
    [
      'one in twenty of the first group is wrong, and all of the next',
      [...nouls(19, 0.9, true), ...nouls(1, 0.9, false), ...nouls(5, 0.6, false)],
      0.9,
    ],
    [
      'too many are wrong in between, and few enough in all',
      [...nouls(10, 0.9, true), ...nouls(1, 0.8, false), ...nouls(9, 0.7, true), ...nouls(9, 0.6, false)],
      0.7,
    ],
    [
      'a no is as sure as its probability of no',
      [noulPrediction(0.25, false), noulPrediction(0.4, true)],
      0.75,
    ],
    ['a choice is as sure as its likeliest option', [choicePrediction([0.25, 0.5, 0.25], 1)], 0.5],
    ['a score is as sure as its likeliest level', [scorePrediction([0.125, 0.25, 0.625], 2)], 0.625],
  ] as const)('the threshold where %s', (_, predictions, threshold) => {
    expect(automaticThreshold(predictions)).toBe(threshold);
  });

  test('every share of wrong answers in whole percents is reached exactly', () => {
    for (let percent = 0; percent <= 30; percent += 1) {
      const predictions = [...nouls(100 - percent, 0.9, true), ...nouls(percent, 0.9, false)];
      expect({ percent, threshold: automaticThreshold(predictions, percent / 100) }).toEqual({
        percent,
        threshold: 0.9,
      });
    }
  });

  test('the share, and how much of it is wrong', () => {
    const predictions = [...nouls(3, 0.9, true), ...nouls(1, 0.8, false), ...nouls(1, 0.7, true)];
    const at = (threshold: number | null) => automaticAnswers(predictions, () => threshold);
    expect(at(0.9)).toEqual({ share: 0.6, error_rate: 0 });
    expect(at(0.8)).toEqual({ share: 0.8, error_rate: 0.25 });
    expect(at(0.5)).toEqual({ share: 1, error_rate: 0.2 });
    expect(at(0.95)).toEqual({ share: 0, error_rate: null });
    expect(at(null)).toEqual({ share: 0, error_rate: null });
  });

  test('out of fold, each question is judged by the threshold of the others', () => {
    // The first fold alone would take what is surer than 0.6, and the second what is surer than 0.9.
    const first = [...nouls(2, 0.9, true), ...nouls(2, 0.6, true)];
    const second = [...nouls(1, 0.9, true), ...nouls(3, 0.6, false)];
    const fold_of = [0, 0, 0, 0, 1, 1, 1, 1];
    expect(abstaining([...first, ...second], fold_of)).toEqual({
      threshold: 0.9,
      share: 3 / 8,
      error_rate: 0,
      // Two of the first by 0.9, all of the second by 0.6: three of six are wrong.
      out_of_fold: { share: 6 / 8, error_rate: 3 / 6 },
    });
  });

  test('a fold whose others allow no threshold is left to people', () => {
    const predictions = [...nouls(2, 0.9, true), ...nouls(2, 0.9, false)];
    expect(abstaining(predictions, [0, 0, 1, 1])).toEqual({
      threshold: null,
      share: 0,
      error_rate: null,
      out_of_fold: { share: 0.5, error_rate: 1 },
    });
  });

  test('one fold alone leaves nothing to choose by', () => {
    expect(abstaining(nouls(3, 0.9, true), [2, 2, 2]).out_of_fold).toBeNull();
  });
});

describe('for all predictions', () => {
  const prediction = fc.oneof(
    fc
      .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean())
      .map(([yes, answer]) => noulPrediction(yes, answer)),
    // Few values, so that equal confidences are common; mostly right, so that there is often a threshold.
    fc
      .tuple(fc.constantFrom(0.6, 0.7, 0.8, 0.9), fc.nat({ max: 12 }))
      .map(([first, answer]) => choicePrediction([first, 1 - first], answer === 0 ? 1 : 0)),
  );
  const predictions = fc.array(prediction, { minLength: 1, maxLength: 80 });
  const limit = fc.double({ min: 0, max: 1, noNaN: true });

  test('no more than allowed is wrong where the threshold was chosen, and no lower threshold would do', () => {
    fc.assert(
      fc.property(predictions, limit, (all, error_max) => {
        const threshold = automaticThreshold(all, error_max);
        const { share, error_rate } = automaticAnswers(all, () => threshold);
        expect(share >= 0 && share <= 1).toBe(true);
        expect(threshold === null).toBe(share === 0);
        expect(error_rate ?? 0).toBeLessThanOrEqual(error_max + 1e-12);
        for (const lower of all.map(confidenceOf)) {
          if (threshold !== null && lower >= threshold) continue;
          expect(automaticAnswers(all, () => lower).error_rate).toBeGreaterThan(error_max);
        }
      }),
      { verbose: 1 },
    );
  });

  test('the condition on responses takes exactly the share that the threshold takes', () => {
    const thousandth = fc.nat({ max: 1_000 }).map((parts) => parts / 1_000);
    const sets = fc.oneof(
      fc.array(
        fc.tuple(thousandth, fc.boolean()).map((of) => noulPrediction(...of)),
        { minLength: 1 },
      ),
      fc.array(
        fc.tuple(thousandth, fc.nat({ max: 2 })).map(([first, answer]) => {
          return choicePrediction([first, (1 - first) / 3, (2 * (1 - first)) / 3], answer);
        }),
        { minLength: 1 },
      ),
    );
    fc.assert(
      fc.property(sets, limit, (all, error_max) => {
        const threshold = automaticThreshold(all, error_max);
        if (threshold === null) return;
        const { least, most } = automaticBounds(all[0]?.type ?? 'noul', threshold);
        const taken = all.filter(({ type, probabilities }) => {
          if (type !== 'noul') return Math.max(...roundToSumOne(probabilities)) >= least;
          const { noul } = noulAnswer(probabilities[1] ?? Number.NaN, null);
          return noul >= least || noul <= (most ?? Number.NaN);
        });
        expect(taken.length / all.length).toBe(automaticAnswers(all, () => threshold).share);
      }),
      { verbose: 1 },
    );
  });

  test('who allows more errors gets no higher threshold and no smaller share', () => {
    fc.assert(
      fc.property(predictions, limit, limit, (all, one, other) => {
        const strict = automaticThreshold(all, Math.min(one, other));
        const lenient = automaticThreshold(all, Math.max(one, other));
        if (strict === null) return;
        expect(lenient).not.toBeNull();
        expect(lenient).toBeLessThanOrEqual(strict);
      }),
      { verbose: 1 },
    );
  });

  test('at 5%, here and out of fold, shares and error rates are shares', () => {
    const folded = predictions.chain((all) =>
      fc.tuple(
        fc.constant(all),
        fc.array(fc.nat({ max: 4 }), { minLength: all.length, maxLength: all.length }),
      ),
    );
    fc.assert(
      fc.property(folded, ([all, fold_of]) => {
        const { error_rate, out_of_fold, threshold } = abstaining(all, fold_of);
        expect(error_rate ?? 0).toBeLessThanOrEqual(AUTOMATIC_ERROR_MAX);
        expect(out_of_fold === null).toBe(new Set(fold_of).size === 1);
        for (const share of [out_of_fold?.share ?? 0, out_of_fold?.error_rate ?? 0]) {
          expect(share >= 0 && share <= 1).toBe(true);
        }
        if (all.every(isCorrect)) expect(threshold).toBe(Math.min(...all.map(confidenceOf)));
      }),
      { verbose: 1 },
    );
  });

  test('a question has no part in the threshold that it is judged by', () => {
    fc.assert(
      fc.property(predictions, predictions, (own, others) => {
        const fold_of = [...own.map(() => 0), ...others.map(() => 1)];
        const expected = automaticThreshold(others);
        const judged = abstaining([...own, ...others], fold_of).out_of_fold;
        const by_others = automaticAnswers(own, () => expected).share * own.length;
        const by_own = automaticAnswers(others, () => automaticThreshold(own)).share * others.length;
        expect((judged?.share ?? 0) * fold_of.length).toBeCloseTo(by_others + by_own, 9);
      }),
      { verbose: 1 },
    );
  });
});
