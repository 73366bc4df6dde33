import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  type AddonEvaluatorOptions,
  createAddonEvaluator,
} from '../../../native/evaluators/addon/addon-evaluator.ts';
import { addonStatus } from '../../../native/evaluators/addon/addon-status.ts';
import { type TinyShape, writeTinyModel } from '../support/gguf.ts';
import { loadOnCpu, TINY_MARKERS, temporaryDirectory } from '../support/models.ts';
import { arbitraryPlan, describeAddon, filledPlan } from './support.ts';

// The first test builds the addon.
setDefaultTimeout(180_000);

/**
 * How far a logit may be from ggml's, where logits are around 1: by the 16 bits of keys and values, and with weights of
 * 8 bits by activations that are rounded to 8 bits as well, of which now and then one falls to the other side. A kernel
 * that loses a row, a column or a block is off by several tenths.
 */
const TOLERANCE = { wide: 5e-3, quantized: 0.2 };

/** Head sizes, ratios of heads and widths that the addon's kernels take, and some that they leave to ggml's. */
const SHAPES: readonly (readonly [string, TinyShape])[] = [
  ['heads of 16, 32 bits', { width: 64, heads: 4, cache_heads: 4, hidden: 96, quantized: false }],
  ['heads of 80, 32 bits', { width: 160, heads: 2, cache_heads: 1, hidden: 96, quantized: false }],
  ['heads of 48', { width: 192, heads: 4, cache_heads: 2, hidden: 160, quantized: true }],
  ['heads of 128', { width: 256, heads: 2, cache_heads: 1, hidden: 288, quantized: true }],
  ['16 heads of 16 that share', { width: 256, heads: 16, cache_heads: 1, hidden: 64, quantized: true }],
  ['32 heads of 16 that share', { width: 512, heads: 32, cache_heads: 1, hidden: 64, quantized: true }],
  ['heads of 24', { width: 96, heads: 4, cache_heads: 1, hidden: 128, quantized: true }],
  ['heads of 144', { width: 288, heads: 2, cache_heads: 2, hidden: 64, quantized: true }],
];

describeAddon("the addon's kernels", () => {
  const token = fc.integer({ min: 0, max: 259 });
  const plan = arbitraryPlan(token, { prefix: 200, branch: 90, branches: 6 });

  test.each(SHAPES)("answer as ggml's: %s", async (_, shape) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, { ...TINY_MARKERS, shape });
    const evaluator = await createAddonEvaluator({
      model_path: path,
      context_tokens: 2048,
      gpu: false,
      threads: 2,
    });
    const { evaluator: llama } = await loadOnCpu(path);
    const tolerance = shape.quantized ? TOLERANCE.quantized : TOLERANCE.wide;
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const logits = (await evaluator.evaluate(whole, { scope: 'a' })).flat(2);
        const expected = (await llama.evaluate(whole, { scope: 'a' })).flat(2);
        const distances = logits.map((logit, index) => Math.abs(logit - (expected[index] ?? Number.NaN)));
        expect(Math.max(...distances)).toBeLessThanOrEqual(tolerance);
      }),
      { numRuns: 6, endOnFailure: true },
    );
    await llama.close();
    await evaluator.close();
  });

  test('compute where the CPU has their instructions, and not where they are switched off', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    const shape: TinyShape = { width: 256, heads: 2, cache_heads: 1, hidden: 288, quantized: true };
    await writeTinyModel(path, { ...TINY_MARKERS, shape });
    const logits = async (own_kernels: AddonEvaluatorOptions['own_kernels']) => {
      const evaluator = await createAddonEvaluator({
        model_path: path,
        context_tokens: 2048,
        gpu: false,
        threads: 1,
        own_kernels,
      });
      const answer = await evaluator.evaluate(filledPlan(1, { prefix: 150, branches: [40] }), { scope: 'a' });
      await evaluator.close();
      return answer.flat(2);
    };
    const [unset, on, off] = [await logits(undefined), await logits(true), await logits(false)];
    const status = await addonStatus(false);
    if (!status.available) throw new Error(status.reason);
    expect(on).toEqual(unset);
    // The order of additions shows in the last bits. With AMX, ggml keeps products to itself, but not attention.
    expect(off.some((logit, index) => logit !== on[index])).toBe(status.has_own_kernels);
    const distances = off.map((logit, index) => Math.abs(logit - (on[index] ?? Number.NaN)));
    expect(Math.max(...distances)).toBeLessThanOrEqual(TOLERANCE.quantized);
  });
});
