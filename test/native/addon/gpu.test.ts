import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { EvaluationFailed } from '../../../native/errors.ts';
import {
  type AddonEvaluator,
  type AddonEvaluatorOptions,
  createAddonEvaluator,
} from '../../../native/evaluators/addon/addon-evaluator.ts';
import { markersV1 } from '../../../native/plan/markers-v1.ts';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { llamaTokenizer, loadOnCpu, TINY_MARKERS, TINY_SCALED } from '../support/models.ts';
import { CONTEXT_TOKENS, distanceFromPinned, VECTORS } from '../support/vectors.ts';
import { arbitraryPlan, describeAddon, filledPlan, probabilityDistance, withLastReads } from './support.ts';

// A software device compiles its shaders when they are first used.
setDefaultTimeout(600_000);

const GPUS = ['cuda', 'metal', 'vulkan'] as const;
const gpu = GPUS.find((name) => name === process.env.TDS_TEST_GPU);
if (gpu === undefined) console.warn('TDS_TEST_GPU does not name cuda, metal or vulkan: no GPU is tested.');

/** How far a GPU's 16-bit sums may move a probability. */
const TOLERANCE = 5e-3;
/** decision-1's pinned scores are of a CPU, which rounds activations to 8 bits where some GPUs do not. */
const SCORE_TOLERANCE = 0.25;
const FAULT_TOKEN = 8;

(gpu === undefined ? describe.skip : describeAddon)('the addon evaluates plans on a GPU', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let path: string;
  let evaluator: AddonEvaluator;
  const open = (options: Partial<AddonEvaluatorOptions> = {}) =>
    createAddonEvaluator({ model_path: path, context_tokens: 5000, gpu, threads: 1, ...options });
  let scopes = 0;
  const fresh = () => ({ scope: `scope ${scopes++}` });
  beforeAll(async () => {
    directory = await temporaryDirectory();
    path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, { ...TINY_MARKERS, context_tokens: 8192 });
    evaluator = await open({ fault_token: FAULT_TOKEN });
  });
  afterAll(async () => {
    await evaluator.close();
    await directory[Symbol.asyncDispose]();
  });

  const plan = arbitraryPlan(fc.integer({ min: 9, max: 259 }), { prefix: 80, branch: 30, branches: 4 });

  test('the last product is computed on the one that was asked for', () => {
    expect(evaluator.device).toBe(gpu ?? '');
  });

  test('a plan answers as through node-llama-cpp on the CPU, also from a prefix that was read before', async () => {
    const { evaluator: cpu } = await loadOnCpu(path);
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const last = withLastReads(whole);
        const expected = await cpu.evaluate(last, fresh());
        const held = fresh();
        const { reused_tokens } = evaluator.stats();
        for (const _ of ['read', 'reused']) {
          const logits = await evaluator.evaluate(last, held);
          expect(probabilityDistance(logits, expected)).toBeLessThanOrEqual(TOLERANCE);
        }
        expect(evaluator.stats().reused_tokens - reused_tokens).toBe(last.prefix.length);
      }),
      { numRuns: 3 },
    );
    await cpu.close();
  });

  test('branches that need more than one wave answer as alone', async () => {
    const wide = filledPlan(3, { prefix: 20, branches: Array.from({ length: 70 }, () => 3) });
    const logits = await evaluator.evaluate(wide, fresh());
    for (const at of [0, 69]) {
      const alone = await evaluator.evaluate({ ...wide, branches: wide.branches.slice(at, at + 1) }, fresh());
      expect(probabilityDistance(logits.slice(at, at + 1), alone)).toBeLessThanOrEqual(TOLERANCE);
    }
  });

  test('a decode that fails fails its plan only', async () => {
    const good = filledPlan(1, { prefix: 40, branches: [10] });
    const bad = { ...good, prefix: [...good.prefix, FAULT_TOKEN] };
    const [first, failed, second] = await Promise.allSettled(
      [good, bad, good].map((one) => evaluator.evaluate(one, fresh())),
    );
    expect([first?.status, failed?.status, second?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(failed?.status === 'rejected' && failed.reason).toBeInstanceOf(EvaluationFailed);
  });

  test('deterministic: the same bits alone, among others, under load, and from a prefix that was read before', async () => {
    const separate = await open({ deterministic: true });
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const alone = [];
        for (const one of whole.branches) {
          alone.push(...(await separate.evaluate({ prefix: whole.prefix, branches: [one] }, fresh())));
        }
        const held = fresh();
        const other = separate.evaluate(filledPlan(2, { prefix: 30, branches: [5, 9] }), fresh());
        expect(await separate.evaluate(whole, held)).toEqual(alone);
        expect(await separate.evaluate(whole, held)).toEqual(alone);
        await other;
      }),
      { numRuns: 2 },
    );
    await separate.close();
  });

  test('a model whose logits are more than a matrix product is read through all of its vocabulary', async () => {
    const scaled_path = join(directory.path, 'scaled.gguf');
    await writeTinyModel(scaled_path, TINY_SCALED);
    const scaled = await open({ model_path: scaled_path, context_tokens: 1024 });
    const { evaluator: cpu } = await loadOnCpu(scaled_path);
    const some = filledPlan(4, { prefix: 50, branches: [20, 30] });
    const distance = probabilityDistance(
      await scaled.evaluate(some, fresh()),
      await cpu.evaluate(some, fresh()),
    );
    expect(distance).toBeLessThanOrEqual(TOLERANCE);
    await cpu.close();
    await scaled.close();
  });

  test('decision-1 gives its pinned scores', async () => {
    const vector = VECTORS.find(({ mode }) => mode === 'fast');
    if (vector === undefined) throw new Error('there is no vector');
    const decision = await open({ model_path: EMBEDDED_WEIGHTS, context_tokens: CONTEXT_TOKENS });
    const { tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS);
    const distance = await distanceFromPinned(vector, markersV1(tokenizer), decision);
    expect(distance).toBeLessThanOrEqual(SCORE_TOLERANCE);
    await decision.close();
    await tokenizer.close();
  });
});
