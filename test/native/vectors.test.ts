import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { ModelTokenizer } from '../../native/model-tokenizer.ts';
import { markersV1 } from '../../native/plan/markers-v1.ts';
import type { PromptProfile } from '../../native/plan/profile.ts';
import type { PlanEvaluator } from '../../native/plan-evaluator.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/weights.ts';
import { llamaTokenizer, loadOnCpu } from './support/models.ts';
import {
  CONTEXT_TOKENS,
  distanceFromPinned,
  ROUNDED_TOLERANCE,
  VECTORS,
  vectorInput,
} from './support/vectors.ts';
import { widened } from './support/widen.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

/** The same weights in 32 bits, where no activation is rounded: CPUs differ by up to 3e-3, AVX2 the most. */
const WIDENED_TOLERANCE = 5e-3;

// The profile alone: an engine divides its scores by temperatures, and reads options in more than one order.
let rounded: PlanEvaluator;
let in_32_bits: PlanEvaluator;
let tokenizer: ModelTokenizer;
let profile: PromptProfile;
beforeAll(async () => {
  const widened_path = await widened(await verifyWeights(EMBEDDED_WEIGHTS));
  ({ evaluator: rounded } = await loadOnCpu(EMBEDDED_WEIGHTS, { context_tokens: CONTEXT_TOKENS }));
  ({ evaluator: in_32_bits } = await loadOnCpu(widened_path, { context_tokens: CONTEXT_TOKENS }));
  ({ tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS));
  profile = markersV1(tokenizer);
});
afterAll(async () => {
  await rounded.close();
  await in_32_bits.close();
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

    test('gets the pinned scores, as far as rounded activations allow', async () => {
      expect(await distanceFromPinned(vector, profile, rounded)).toBeLessThanOrEqual(ROUNDED_TOLERANCE);
    });

    test('gets the pinned scores from the same weights in 32 bits', async () => {
      expect(await distanceFromPinned(vector, profile, in_32_bits)).toBeLessThanOrEqual(WIDENED_TOLERANCE);
    });
  },
);
