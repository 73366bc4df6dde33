import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createAddonEvaluator } from '../../native/evaluators/addon/addon-evaluator.ts';
import type { ModelTokenizer } from '../../native/model-tokenizer.ts';
import { stateTokens } from '../../native/plan/hidden-state.ts';
import { markersV1 } from '../../native/plan/markers-v1.ts';
import type { PlanEvaluator } from '../../native/plan-evaluator.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/weights.ts';
import { describeAddon } from './addon/support.ts';
import { largestDistance } from './support/distances.ts';
import { llamaTokenizer, loadOnCpu } from './support/models.ts';
import { CONTEXT_TOKENS, VECTORS, type Vector, VOCABULARY, vectorInput } from './support/vectors.ts';
import { widened } from './support/widen.ts';

setDefaultTimeout(180_000);

/**
 * Attention rounds to 16 bits in both, to integers in the addon and to floats in llama.cpp, whose sums also depend on
 * the CPU. With these weights the largest distance is 0.0006, by the kernels for AVX2.
 */
const PROBABILITY_TOLERANCE = 1.5e-3;
/** Of logits, which are about 10: an answer's are 1. With these weights the largest distance is 0.0214. */
const STATE_TOLERANCE = 0.03;

/** Each question's probabilities, one list after the other, and all numbers of the hidden states. */
async function answer(
  evaluator: PlanEvaluator,
  tokenizer: ModelTokenizer,
  vector: Vector,
): Promise<{ readonly probabilities: readonly number[]; readonly states: readonly number[] }> {
  const profile = markersV1(tokenizer, stateTokens(VOCABULARY));
  const input = vectorInput(vector);
  const planned = await profile.plan(input, CONTEXT_TOKENS);
  const plans = profile.states?.asked(input, planned.plans, () => true) ?? [];
  const logits = await Promise.all(plans.map((plan) => evaluator.evaluate(plan, { scope: 'test' })));
  const states = profile.states?.of(input, plans, logits).flat(2) ?? [];
  const probabilities = profile.scores(input, plans, logits).flatMap((scores) => {
    // A noul's only score is the log-odds of yes.
    const weights = (scores.length === 1 ? [...scores, 0] : scores).map(Math.exp);
    const sum = weights.reduce((left, right) => left + right, 0);
    return weights.map((weight) => weight / sum);
  });
  return { probabilities, states };
}

// Weights of 8 bits make llama.cpp round activations to 8 bits too, and any other order of additions then shows in an
// answer. The same numbers in 32 bits leave what the two implementations themselves make of a plan.
describeAddon('decision-1 answers alike through both implementations', () => {
  let addon: PlanEvaluator;
  let llama: PlanEvaluator;
  let tokenizer: ModelTokenizer;
  beforeAll(async () => {
    const model_path = await widened(await verifyWeights(EMBEDDED_WEIGHTS));
    addon = await createAddonEvaluator({
      model_path,
      context_tokens: CONTEXT_TOKENS,
      gpu: false,
      threads: 1,
    });
    llama = (await loadOnCpu(model_path, { context_tokens: CONTEXT_TOKENS })).evaluator;
    ({ tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS));
  });
  afterAll(async () => {
    await addon.close();
    await llama.close();
    await tokenizer.close();
  });

  test.each(VECTORS.map((vector) => [`${vector.name}, ${vector.mode}`, vector] as const))(
    '%s',
    async (_, vector) => {
      const ours = await answer(addon, tokenizer, vector);
      const theirs = await answer(llama, tokenizer, vector);
      expect(largestDistance(ours.probabilities, theirs.probabilities)).toBeLessThanOrEqual(
        PROBABILITY_TOLERANCE,
      );
      expect(ours.states.length).toBeGreaterThan(0);
      expect(largestDistance(ours.states, theirs.states)).toBeLessThanOrEqual(STATE_TOLERANCE);
    },
  );
});
