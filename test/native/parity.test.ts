import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createAddonEvaluator } from '../../native/evaluators/addon/addon-evaluator.ts';
import type { ModelTokenizer } from '../../native/model-tokenizer.ts';
import { markersV1 } from '../../native/plan/markers-v1.ts';
import type { PlanEvaluator } from '../../native/plan-evaluator.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/weights.ts';
import { describeAddon } from './addon/support.ts';
import { llamaTokenizer, loadOnCpu, temporaryDirectory } from './support/models.ts';
import { VECTORS, type Vector, vectorInput } from './support/vectors.ts';
import { widen } from './support/widen.ts';

setDefaultTimeout(180_000);

const CONTEXT_TOKENS = 1024;

/** Each question's probabilities, one list after the other. */
async function answer(
  evaluator: PlanEvaluator,
  tokenizer: ModelTokenizer,
  vector: Vector,
): Promise<readonly number[]> {
  const profile = markersV1(tokenizer);
  const input = vectorInput(vector);
  const { plans } = await profile.plan(input, CONTEXT_TOKENS);
  const logits = await Promise.all(plans.map((plan) => evaluator.evaluate(plan, { scope: 'test' })));
  return profile.scores(input, plans, logits).flatMap((scores) => {
    // A noul's only score is the log-odds of yes.
    const weights = (scores.length === 1 ? [...scores, 0] : scores).map(Math.exp);
    const sum = weights.reduce((left, right) => left + right, 0);
    return weights.map((weight) => weight / sum);
  });
}

// Weights of 8 bits make llama.cpp round activations to 8 bits too, and any other order of additions then shows in an
// answer. The same numbers in 32 bits leave what the two implementations themselves make of a plan.
describeAddon('decision-1 answers alike through both implementations', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let addon: PlanEvaluator;
  let llama: PlanEvaluator;
  let tokenizer: ModelTokenizer;
  beforeAll(async () => {
    directory = await temporaryDirectory();
    const { parts } = await verifyWeights(EMBEDDED_WEIGHTS);
    const model_path = await widen(parts, directory.path);
    addon = await createAddonEvaluator({
      model_path,
      context_tokens: CONTEXT_TOKENS,
      gpu: false,
      threads: 1,
    });
    llama = (await loadOnCpu(model_path, { context_tokens: CONTEXT_TOKENS })).evaluator;
    ({ tokenizer } = await llamaTokenizer(model_path));
  });
  afterAll(async () => {
    await addon.close();
    await llama.close();
    await tokenizer.close();
    await directory[Symbol.asyncDispose]();
  });

  test.each(VECTORS.map((vector) => [`${vector.name}, ${vector.mode}`, vector] as const))(
    '%s',
    async (_, vector) => {
      const ours = await answer(addon, tokenizer, vector);
      const theirs = await answer(llama, tokenizer, vector);
      expect(ours.length).toBe(theirs.length);
      const distances = ours.map((probability, index) =>
        Math.abs(probability - (theirs[index] ?? Number.NaN)),
      );
      expect(Math.max(...distances)).toBeLessThanOrEqual(1e-3);
    },
  );
});
