import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { accuracy, expectedCalibrationError, negativeLogLikelihood } from '../../../src/eval/metrics.ts';
import type { Prediction } from '../../../src/eval/predictions.ts';
import { choicePrediction, noulPrediction, scorePrediction } from '../../eval/support.ts';
import { PYTHON, runPython } from './support.ts';

setDefaultTimeout(120_000);

const Measured = Type.Object({
  questions: Type.Integer(),
  accuracy: Type.Number(),
  nll: Type.Number(),
  ece: Type.Number(),
});

/** Shares of tenths, so that ties are frequent. */
const tenths = fc.integer({ min: 0, max: 10 }).map((number) => number / 10);
const shares = fc
  .array(fc.integer({ min: 0, max: 4 }), { minLength: 2, maxLength: 5 })
  .filter((counts) => counts.some((count) => count > 0))
  .map((counts) => counts.map((count) => count / counts.reduce((sum, one) => sum + one, 0)));
const nouls = fc.array(fc.tuple(tenths, fc.boolean()), { minLength: 1, maxLength: 40 });
const others = fc.array(fc.tuple(shares, fc.nat()), { minLength: 1, maxLength: 40 });
const sets: fc.Arbitrary<readonly Prediction[]> = fc.oneof(
  nouls.map((all) => all.map(([yes, answer]) => noulPrediction(yes, answer))),
  ...[choicePrediction, scorePrediction].map((predicted) =>
    others.map((all) => all.map(([shown, answer]) => predicted(shown, answer % shown.length))),
  ),
);

test.skipIf(PYTHON === null)('the training code measures as `tds eval` does', async () => {
  const drawn = fc.sample(sets, 300);
  const lines = drawn.map((predictions) => JSON.stringify(predictions)).join('\n');
  const program = join(import.meta.dir, 'measure_predictions.py');
  const { code, stdout, stderr } = await runPython(PYTHON ?? '', [program], lines);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const measured = stdout.trim().split('\n');
  expect(measured).toHaveLength(drawn.length);
  for (const [index, predictions] of drawn.entries()) {
    const [own] = Object.values(
      Value.Parse(Type.Record(Type.String(), Measured), JSON.parse(measured[index] ?? '')),
    );
    expect(own?.questions).toBe(predictions.length);
    expect(own?.accuracy).toBeCloseTo(accuracy(predictions), 9);
    expect(own?.nll).toBeCloseTo(negativeLogLikelihood(predictions), 9);
    expect(own?.ece).toBeCloseTo(expectedCalibrationError(predictions), 9);
  }
});
