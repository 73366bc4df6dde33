import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { confusionCells } from '../../src/eval/confusion-matrix.ts';
import { accuracy } from '../../src/eval/metrics.ts';
import { choicePrediction, noulPrediction } from './support.ts';

test('cells count each right answer with the one that was given, the largest first', () => {
  const predictions = [
    noulPrediction(0.9, true),
    noulPrediction(0.5, true),
    noulPrediction(0.6, false),
    noulPrediction(0.1, true),
    noulPrediction(0.2, true),
    noulPrediction(0.3, true),
  ];
  expect(confusionCells(predictions)).toEqual([
    { answer: 1, predicted: 0, count: 3 },
    { answer: 1, predicted: 1, count: 2 },
    { answer: 0, predicted: 1, count: 1 },
  ]);
});

test('all predictions are in a cell, and the accuracy is the share on the diagonal', () => {
  const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(fc.tuple(shares, fc.nat(2)), { minLength: 1 }), (drawn) => {
      const predictions = drawn.map(([probabilities, answer]) => choicePrediction(probabilities, answer));
      const cells = confusionCells(predictions);
      const sum = (of: typeof cells) => of.reduce((total, { count }) => total + count, 0);
      expect(sum(cells)).toBe(predictions.length);
      const right = sum(cells.filter(({ answer, predicted }) => answer === predicted));
      expect(right / predictions.length).toBeCloseTo(accuracy(predictions), 12);
    }),
  );
});
