import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { PlanEvaluator } from '../../native/evaluator.ts';
import type { ModelTokenizer } from '../../native/model-tokenizer.ts';
import { markersV1 } from '../../native/plan/markers-v1.ts';
import type { PromptProfile } from '../../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS } from '../../native/weights.ts';
import { llamaTokenizer, loadOnCpu } from './support/models.ts';
import { VECTORS, vectorInput } from './support/vectors.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(60_000);

/** How far another build or batch shape may move a score of the embedded weights. */
const TOLERANCE = 0.1;

const CONTEXT_TOKENS = 1024;

// The profile alone: an engine divides its scores by temperatures, and reads options in more than one order.
let evaluator: PlanEvaluator;
let tokenizer: ModelTokenizer;
let profile: PromptProfile;
beforeAll(async () => {
  ({ evaluator } = await loadOnCpu(EMBEDDED_WEIGHTS, { context_tokens: CONTEXT_TOKENS }));
  ({ tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS));
  profile = markersV1(tokenizer);
});
afterAll(async () => {
  await evaluator.close();
  await tokenizer.close();
});

test('there are sixteen vectors', () => {
  expect(VECTORS.length).toBe(16);
});

describe.each(VECTORS.map((vector) => [`${vector.name}, ${vector.mode}`, vector] as const))(
  '%s',
  (_, vector) => {
    const input = vectorInput(vector);

    test('becomes the pinned plans, token by token', async () => {
      const plan = await profile.plan(input, CONTEXT_TOKENS);
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
      const { plans } = await profile.plan(input, CONTEXT_TOKENS);
      const logits = await Promise.all(plans.map((plan) => evaluator.evaluate(plan, { scope: 'test' })));
      const scores = profile.scores(input, plans, logits);
      const expected = vector.plans.flatMap(({ branches }) => branches.map((branch) => branch.scores));
      expect(scores.map((question) => question.length)).toEqual(expected.map((question) => question.length));
      const distances = expected.flatMap((question, index) =>
        question.map((score, option) => Math.abs(score - (scores[index]?.[option] ?? Number.NaN))),
      );
      expect(Math.max(...distances)).toBeLessThanOrEqual(TOLERANCE);
    });
  },
);
