import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import {
  type AddonEvaluator,
  createAddonEvaluator,
} from '../../../../native/evaluators/addon/addon-evaluator.ts';
import type { ModelTokenizer } from '../../../../native/model-tokenizer.ts';
import { stateTokens, withStateTokens } from '../../../../native/plan/hidden-state.ts';
import { markersV1 } from '../../../../native/plan/markers-v1.ts';
import { EMBEDDED_WEIGHTS } from '../../../../native/weights.ts';
import { arbitraryBranch, arbitraryPlan, describeAddon, filledPlan } from '../../addon/support.ts';
import { llamaTokenizer } from '../../support/models.ts';
import { distanceFromPinned, ROUNDED_TOLERANCE, VECTORS, VOCABULARY } from '../../support/vectors.ts';

// The first test builds the addon.
setDefaultTimeout(180_000);

describeAddon('the addon reads decision-1', () => {
  let evaluator: AddonEvaluator;
  let separate: AddonEvaluator;
  let tokenizer: ModelTokenizer;
  let scopes = 0;
  const fresh = () => ({ scope: `scope ${scopes++}` });
  const open = (deterministic: boolean, threads = 1, context_tokens = 4200) =>
    createAddonEvaluator({
      model_path: EMBEDDED_WEIGHTS,
      context_tokens,
      gpu: false,
      threads,
      deterministic,
    });
  beforeAll(async () => {
    evaluator = await open(false);
    separate = await open(true);
    ({ tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS));
  });
  afterAll(async () => {
    await evaluator.close();
    await separate.close();
    await tokenizer.close();
  });

  test.each(VECTORS.map((vector) => [`${vector.name}, ${vector.mode}`, vector] as const))(
    'the pinned scores: %s',
    async (_, vector) => {
      for (const one of [evaluator, separate]) {
        const distance = await distanceFromPinned(vector, markersV1(tokenizer), one);
        expect(distance).toBeLessThanOrEqual(ROUNDED_TOLERANCE);
      }
    },
  );

  const token = fc.integer({ min: 9, max: VOCABULARY - 1 });

  test('a question gets the same bits alone, with 63 others in any order and their hidden states, and under load', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbitraryPlan(token, { prefix: 150, branch: 40, branches: 1 }),
        fc.array(arbitraryBranch(token, 12), { minLength: 63, maxLength: 63 }),
        fc.nat({ max: 63 }),
        arbitraryPlan(token, { prefix: 100, branch: 40, branches: 3 }),
        async (plan, others, position, load) => {
          const alone = await evaluator.evaluate(plan, fresh());
          const [stated] = withStateTokens(
            [{ prefix: plan.prefix, branches: others, readings: others.map((_, reading) => reading) }],
            stateTokens(VOCABULARY),
            (reading) => reading % 2 === 1,
          );
          const beside = stated?.branches ?? [];
          const branches = [...beside.slice(0, position), ...plan.branches, ...beside.slice(position)];
          const loads = [0, 1].map(() => evaluator.evaluate(load, fresh()));
          const [among, again] = await Promise.all([
            evaluator.evaluate({ ...plan, branches }, fresh()),
            evaluator.evaluate(plan, fresh()),
          ]);
          expect(among[position]).toEqual(alone[0] ?? []);
          expect(again).toEqual(alone);
          await Promise.all(loads);
        },
      ),
      { numRuns: 4 },
    );
  });

  test('a question gets the same bits whatever number of threads computes', async () => {
    const plan = filledPlan(3, { prefix: 150, branches: [30, 70, 12] }, VOCABULARY);
    const on_three = await open(false, 3);
    try {
      expect(await on_three.evaluate(plan, fresh())).toEqual(await evaluator.evaluate(plan, fresh()));
    } finally {
      await on_three.close();
    }
  });

  test('a long record is read, and once more from memory with other questions: the same bits', async () => {
    const plan = filledPlan(4, { prefix: 2_000, branches: [30] }, VOCABULARY);
    const others = filledPlan(5, { prefix: 0, branches: [384, 7] }, VOCABULARY);
    const scope = fresh();
    const reused = evaluator.stats().reused_tokens;
    const [alone] = await evaluator.evaluate(plan, scope);
    const again = { ...plan, branches: [...others.branches, ...plan.branches] };
    expect((await evaluator.evaluate(again, scope)).at(-1)).toEqual(alone ?? []);
    expect(evaluator.stats().reused_tokens - reused).toBe(2_000);
  });

  test('a question gets the same bits in the decoder of large plans as in that of small ones', async () => {
    const small = filledPlan(1, { prefix: 200, branches: [30] }, VOCABULARY);
    const large = {
      ...small,
      branches: [...small.branches, ...filledPlan(2, { prefix: 0, branches: [3900] }, VOCABULARY).branches],
    };
    const [alone] = await evaluator.evaluate(small, fresh());
    const [among] = await evaluator.evaluate(large, fresh());
    expect(among).toEqual(alone ?? []);
  });
});
