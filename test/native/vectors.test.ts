import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { DecisionEngine } from '../../native/engine.ts';
import { openEngine } from '../../native/open.ts';
import { VECTORS, vectorInput } from './support/vectors.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(60_000);

/** How far another build or batch shape may move a score of the embedded weights. */
const TOLERANCE = 0.1;

let engine: DecisionEngine;
beforeAll(async () => {
  engine = await openEngine({ gpu: false, threads: 1, context_tokens: 1024 });
});
afterAll(() => engine.close());

test('there are sixteen vectors', () => {
  expect(VECTORS.length).toBe(16);
});

describe.each(VECTORS.map((vector) => [`${vector.name}, ${vector.mode}`, vector] as const))(
  '%s',
  (_, vector) => {
    const input = vectorInput(vector);

    test('becomes the pinned plans, token by token', () => {
      const plan = engine.plan(input);
      const tokens = plan.plans.map(({ prefix, branches }) => ({
        prefix,
        branches: branches.map((branch) => ({
          ids: branch.tokens,
          reads: branch.reads.map((read) => read.index),
        })),
      }));
      expect(tokens).toEqual(
        vector.plans.map(({ prefix, branches }) => ({
          prefix,
          branches: branches.map(({ ids, reads }) => ({ ids, reads })),
        })),
      );
      const read = vector.plans.flatMap(({ prefix, branches }) => [
        prefix,
        ...branches.map(({ ids }) => ids),
      ]);
      expect(plan.input_tokens).toBe(read.flat().length);
    });

    test('gets the pinned scores', async () => {
      const scores = await engine.evaluate(input, engine.plan(input), { scope: 'test' });
      const expected = vector.plans.flatMap(({ branches }) => branches.map((branch) => branch.scores));
      expect(scores.map((question) => question.length)).toEqual(expected.map((question) => question.length));
      const distances = expected.flatMap((question, index) =>
        question.map((score, option) => Math.abs(score - (scores[index]?.[option] ?? Number.NaN))),
      );
      expect(Math.max(...distances)).toBeLessThanOrEqual(TOLERANCE);
    });
  },
);
