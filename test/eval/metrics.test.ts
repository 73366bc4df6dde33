import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  accuracy,
  automaticShare,
  balancedAccuracy,
  brier,
  chance,
  expectedCalibrationError,
  METRICS,
  meanAbsoluteLevelError,
  meanLogLoss,
  negativeLogLikelihood,
  reliabilityBins,
} from '../../src/eval/metrics.ts';
import type { Prediction } from '../../src/eval/predictions.ts';
import { choicePrediction, noulPrediction, scorePrediction } from './support.ts';

const nouls = fc.array(
  fc
    .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean())
    .map(([yes, answer]) => noulPrediction(yes, answer)),
  { minLength: 1, maxLength: 40 },
);

const LEVELS = 4;
const scores = fc.array(
  fc
    .tuple(
      fc.array(fc.double({ min: 0.01, max: 1, noNaN: true }), { minLength: LEVELS, maxLength: LEVELS }),
      fc.nat({ max: LEVELS - 1 }),
    )
    .map(([weights, answer]) => {
      const sum = weights.reduce((total, weight) => total + weight, 0);
      return scorePrediction(
        weights.map((weight) => weight / sum),
        answer,
      );
    }),
  { minLength: 1, maxLength: 40 },
);

describe('on cases worked by hand', () => {
  const four = [
    noulPrediction(0.9, true),
    noulPrediction(0.8, false),
    noulPrediction(0.3, false),
    noulPrediction(0.4, true),
  ];

  test.each([
    ['accuracy', accuracy, 0.5],
    ['balanced accuracy', balancedAccuracy, 0.5],
    ['chance', chance, 0.5],
    ['Brier', brier, (0.01 + 0.64 + 0.09 + 0.36) / 4],
    ['NLL', negativeLogLikelihood, -(Math.log(0.9) + Math.log(0.2) + Math.log(0.7) + Math.log(0.4)) / 4],
    // One prediction a bin, each with its own gap.
    ['ECE', expectedCalibrationError, (0.1 + 0.8 + 0.3 + 0.6) / 4],
    // The surest is right, the next is wrong.
    ['automatic share', automaticShare, 0.25],
  ] as const)('%s of four yes/no questions', (_, metric, value) => {
    expect(metric(four)).toBeCloseTo(value, 12);
  });

  test('a noul at one half is yes, as its answer says', () => {
    expect(accuracy([noulPrediction(0.5, true)])).toBe(1);
  });

  test('Brier and NLL of a choice are over all options', () => {
    const one = [choicePrediction([0.5, 0.3, 0.2], 1)];
    expect(brier(one)).toBeCloseTo(0.25 + 0.49 + 0.04, 12);
    expect(negativeLogLikelihood(one)).toBeCloseTo(-Math.log(0.3), 12);
    expect(meanLogLoss(one, 0.4)).toBeCloseTo(-Math.log(0.4), 12);
  });

  test('where people disagreed, Brier and NLL are expected over them', () => {
    const one = [choicePrediction([0.5, 0.3, 0.2], 0, { target: [0.75, 0.25, 0] })];
    expect(brier(one)).toBeCloseTo(0.75 * (0.25 + 0.09 + 0.04) + 0.25 * (0.25 + 0.49 + 0.04), 12);
    expect(negativeLogLikelihood(one)).toBeCloseTo(-0.75 * Math.log(0.5) - 0.25 * Math.log(0.3), 12);
  });

  test('balanced accuracy counts a rare class as much as a common one', () => {
    const predictions = [
      ...Array.from({ length: 9 }, () => noulPrediction(0.1, false)),
      noulPrediction(0.1, true),
    ];
    expect(accuracy(predictions)).toBeCloseTo(0.9, 12);
    expect(balancedAccuracy(predictions)).toBeCloseTo(0.5, 12);
  });

  test('options of one name are other classes in another set', () => {
    const predictions = [
      choicePrediction([0.9, 0.1], 0, { source: 'one' }),
      choicePrediction([0.9, 0.1], 0, { source: 'one' }),
      choicePrediction([0.1, 0.9], 0, { source: 'two' }),
    ];
    expect(balancedAccuracy(predictions)).toBeCloseTo(0.5, 12);
  });

  test.each([
    ['sure and right', [scorePrediction([0, 0, 1], 2)], 0],
    ['sure and as far off as can be', [scorePrediction([1, 0, 0, 0], 3)], 3],
    // The expected level is 0.2 + 2 * 0.7 = 1.6.
    ['between the levels', [scorePrediction([0.1, 0.2, 0.7], 2)], 0.4],
    // The most likely level is right, the expected one is 1 away from it.
    ['by the expected level, not by the most likely', [scorePrediction([0.5, 0, 0.5], 0)], 1],
    ['above the right level and below it alike', [scorePrediction([0, 1], 0), scorePrediction([1, 0], 1)], 1],
    [
      'of the scores only',
      [scorePrediction([0, 1], 0), choicePrediction([0, 1], 1), noulPrediction(0, false)],
      1,
    ],
    ['of no score', [choicePrediction([0, 1], 1), noulPrediction(0, false)], Number.NaN],
  ] as const)('the level error: %s', (_, predictions, value) => {
    if (Number.isNaN(value)) expect(meanAbsoluteLevelError(predictions)).toBeNaN();
    else expect(meanAbsoluteLevelError(predictions)).toBeCloseTo(value, 12);
  });

  test('at 5% error, nineteen right and one wrong can all be decided', () => {
    const right = Array.from({ length: 19 }, (_, index) => noulPrediction(0.99 - index / 1000, true));
    expect(automaticShare([...right, noulPrediction(0.6, false)])).toBe(1);
    expect(automaticShare([...right.slice(1), noulPrediction(0.6, false)])).toBeCloseTo(18 / 19, 12);
  });

  test('equal confidences are taken or left together, in whatever order they come', () => {
    const mixed = [noulPrediction(0.9, true), noulPrediction(0.9, false)];
    expect(automaticShare(mixed)).toBe(0);
    expect(automaticShare(mixed.toReversed())).toBe(0);
  });
});

describe('for all predictions', () => {
  test('bins hold every prediction once, and the ECE is between 0 and 1', () => {
    fc.assert(
      fc.property(nouls, (predictions) => {
        const bins = reliabilityBins(predictions);
        expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(predictions.length);
        for (const { from, to, predicted, observed } of bins) {
          expect(predicted).toBeGreaterThanOrEqual(from - 1e-9);
          expect(predicted).toBeLessThanOrEqual(to + 1e-9);
          expect(observed >= 0 && observed <= 1).toBe(true);
        }
        const error = expectedCalibrationError(predictions);
        expect(error >= 0 && error <= 1).toBe(true);
      }),
      { verbose: 1 },
    );
  });

  test('no metric depends on the order of the predictions', () => {
    const withOrder = fc
      .oneof(nouls, scores)
      .chain((predictions) =>
        fc.tuple(
          fc.constant(predictions),
          fc.shuffledSubarray(predictions, { minLength: predictions.length, maxLength: predictions.length }),
        ),
      );
    fc.assert(
      fc.property(withOrder, ([predictions, other]) => {
        for (const metric of Object.values(METRICS)) {
          const value = metric(predictions);
          if (Number.isNaN(value)) expect(metric(other)).toBeNaN();
          else expect(metric(other)).toBeCloseTo(value, 9);
        }
      }),
      { verbose: 1 },
    );
  });

  test('sure and right is perfect, sure and wrong is as bad as can be', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1 }), (answers) => {
        const right: Prediction[] = answers.map((answer) => noulPrediction(Number(answer), answer));
        const wrong: Prediction[] = answers.map((answer) => noulPrediction(Number(!answer), answer));
        expect([accuracy(right), brier(right), negativeLogLikelihood(right)]).toEqual([1, 0, 0]);
        expect([expectedCalibrationError(right), automaticShare(right)]).toEqual([0, 1]);
        expect([accuracy(wrong), brier(wrong), automaticShare(wrong)]).toEqual([0, 1, 0]);
        expect(Number.isFinite(negativeLogLikelihood(wrong))).toBe(true);
      }),
      { verbose: 1 },
    );
  });

  test('the level error is at most the distance of the ends, and the same on a scale turned around', () => {
    fc.assert(
      fc.property(scores, (predictions) => {
        const turned = predictions.map(({ probabilities, answer }) =>
          scorePrediction(probabilities.toReversed(), LEVELS - 1 - answer),
        );
        const error = meanAbsoluteLevelError(predictions);
        expect(error >= 0 && error <= LEVELS - 1).toBe(true);
        expect(meanAbsoluteLevelError(turned)).toBeCloseTo(error, 9);
      }),
      { verbose: 1 },
    );
  });

  test('saying how often it is so is never beaten in likelihood by saying anything else', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1 }),
        fc.double({ min: 0.001, max: 0.999, noNaN: true }),
        (answers, said) => {
          const share = answers.filter(Boolean).length / answers.length;
          const honest = answers.map((answer) => noulPrediction(share, answer));
          const other = answers.map((answer) => noulPrediction(said, answer));
          expect(negativeLogLikelihood(honest)).toBeLessThanOrEqual(negativeLogLikelihood(other) + 1e-9);
          expect(brier(honest)).toBeLessThanOrEqual(brier(other) + 1e-9);
          expect(expectedCalibrationError(honest)).toBeCloseTo(0, 9);
        },
      ),
      { verbose: 1 },
    );
  });
});
