import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { EvaluationFailed } from '../../../native/errors.ts';
import { createAddonEvaluator } from '../../../native/evaluators/addon/addon-evaluator.ts';
import { addonStatus } from '../../../native/evaluators/addon/addon-status.ts';
import {
  type KernelInstructions,
  OWN_INSTRUCTIONS,
  type OwnInstructions,
} from '../../../native/evaluators/addon/binding.ts';
import type { PlanLogits } from '../../../native/plan/plan.ts';
import { rejection } from '../../support/rejection.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { largestDistance } from '../support/distances.ts';
import { type TinyShape, writeTinyModel } from '../support/gguf.ts';
import { loadOnCpu, TINY_MARKERS } from '../support/models.ts';
import { arbitraryPlan, describeAddon, filledPlan } from './support.ts';

// The first test builds the addon.
setDefaultTimeout(180_000);

/**
 * How far a logit may be from ggml's, where logits are around 1. Keys and values have 16 bits. With weights of 8 bits
 * activations are rounded to 8 bits too, and some round to the other side. A kernel that loses a row, a column or a
 * block is off by several tenths.
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

/** The instructions that the kernels can be tried with here: a CPU has all that are worse than its best ones. */
async function instructionsHere(): Promise<readonly OwnInstructions[]> {
  const status = await addonStatus(false);
  if (!status.available || status.kernels === 'none') return [];
  return OWN_INSTRUCTIONS.slice(OWN_INSTRUCTIONS.indexOf(status.kernels));
}

describeAddon("the addon's kernels", () => {
  const token = fc.integer({ min: 0, max: 259 });
  const plan = arbitraryPlan(token, { prefix: 200, branch: 90, branches: 6 });
  const open = (model_path: string, threads: number, kernels?: KernelInstructions) =>
    createAddonEvaluator({ model_path, context_tokens: 2048, gpu: false, threads, kernels });

  test.each(SHAPES)("answer as ggml's, with the same bits by any instructions: %s", async (_, shape) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, { ...TINY_MARKERS, shape });
    const evaluators = await Promise.all((await instructionsHere()).map((kernels) => open(path, 2, kernels)));
    const { evaluator: llama } = await loadOnCpu(path);
    const tolerance = shape.quantized ? TOLERANCE.quantized : TOLERANCE.wide;
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const expected = (await llama.evaluate(whole, { scope: 'a' })).flat(2);
        let first: readonly number[] | undefined;
        for (const evaluator of evaluators) {
          const logits = (await evaluator.evaluate(whole, { scope: 'a' })).flat(2);
          expect(largestDistance(logits, expected)).toBeLessThanOrEqual(tolerance);
          first ??= logits;
          expect(logits).toEqual([...first]);
        }
      }),
      { numRuns: 6, endOnFailure: true },
    );
    await Promise.all([llama, ...evaluators].map((evaluator) => evaluator.close()));
  });

  test.each([
    ['by our kernels', { width: 192, heads: 4, cache_heads: 2, hidden: 160, quantized: true }, true],
    [
      'where attention is ggml’s',
      { width: 96, heads: 4, cache_heads: 1, hidden: 128, quantized: true },
      false,
    ],
    [
      'where products are ggml’s',
      { width: 64, heads: 4, cache_heads: 4, hidden: 96, quantized: false },
      false,
    ],
  ] as const)('short plans get the same bits alone as with others: %s', async (_, shape, are_ours) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, { ...TINY_MARKERS, shape });
    const plans = Array.from({ length: 40 }, (_none, seed) =>
      filledPlan(seed, { prefix: seed % 7, branches: [1 + (seed % 13)] }),
    );
    for (const kernels of [...(await instructionsHere()), 'none'] as const) {
      for (const deterministic of [false, true]) {
        const evaluator = await createAddonEvaluator({
          model_path: path,
          context_tokens: 2048,
          gpu: false,
          threads: 1,
          kernels,
          deterministic,
        });
        const alone: PlanLogits[] = [];
        for (const each of plans) alone.push(await evaluator.evaluate(each, { scope: 'alone' }));
        const { padding_tokens } = evaluator.stats();
        // Only decodes of one token are padded where our kernels compute.
        if (are_ours && kernels !== 'none') expect(padding_tokens).toBeLessThanOrEqual(10);
        if (!are_ours || kernels === 'none') expect(padding_tokens).toBeGreaterThan(40 * plans.length);
        const together = plans.map((each) => evaluator.evaluate(each, { scope: 'together' }));
        expect(await Promise.all(together)).toEqual(alone);
        await evaluator.close();
        if (deterministic) continue;
        // Some threads have no row.
        const on_three = await open(path, 3, kernels);
        for (const [at, each] of plans.slice(0, 4).entries())
          expect(await on_three.evaluate(each, { scope: 'alone' })).toEqual(alone[at] ?? []);
        await on_three.close();
      }
    }
  });

  test('compute by the best instructions that the CPU has, and not where they are switched off', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    const shape: TinyShape = { width: 256, heads: 2, cache_heads: 1, hidden: 288, quantized: true };
    await writeTinyModel(path, { ...TINY_MARKERS, shape });
    const logits = async (kernels: KernelInstructions | undefined) => {
      const evaluator = await open(path, 1, kernels);
      const answer = await evaluator.evaluate(filledPlan(1, { prefix: 150, branches: [40] }), { scope: 'a' });
      await evaluator.close();
      return answer.flat(2);
    };
    const here = await instructionsHere();
    const [unset, off] = [await logits(undefined), await logits('none')];
    for (const kernels of here) expect(await logits(kernels)).toEqual(unset);
    // The order of additions shows in the last bits.
    expect(off.some((logit, index) => logit !== unset[index])).toBe(here.length > 0);
    expect(largestDistance(off, unset)).toBeLessThanOrEqual(TOLERANCE.quantized);
  });

  test('give no answer where an activation is NaN, whatever its place in a block', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    const shape: TinyShape = { width: 64, heads: 4, cache_heads: 4, hidden: 64, quantized: true };
    const instructions = await instructionsHere();
    for (let nan_hidden = 0; nan_hidden < 32; nan_hidden += 1) {
      await writeTinyModel(path, { ...TINY_MARKERS, shape, nan_hidden });
      for (const kernels of instructions) {
        const evaluator = await open(path, 1, kernels);
        const outcome = rejection(
          evaluator.evaluate(filledPlan(1, { prefix: 20, branches: [5] }), { scope: 'a' }),
        );
        expect(await outcome).toBeInstanceOf(EvaluationFailed);
        await evaluator.close();
      }
    }
  });

  test.skipIf(process.platform !== 'linux' || process.arch !== 'x64')(
    'are there for the instructions that Linux names',
    async () => {
      const named = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim().split(' ');
      const has = (...flags: readonly string[]) => flags.every((flag) => named?.includes(flag));
      const best = (
        [
          ['amx', has('amx_tile', 'amx_int8', 'avx512_vnni')],
          ['avx512', has('avx512_vnni')],
          ['avx2', has('avx2', 'fma')],
        ] as const
      ).find(([, is_there]) => is_there)?.[0];
      expect((await instructionsHere())[0]).toBe(best);
    },
  );
});
