import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { EngineOverloaded, EvaluationFailed } from '../../../../native/errors.ts';
import type { LlamaEvaluator } from '../../../../native/evaluators/llama/llama-evaluator.ts';
import type { Branch, Plan } from '../../../../native/plan/plan.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { writeTinyModel } from '../../support/gguf.ts';
import { loadOnCpu, TINY_MARKERS } from '../../support/models.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

const CONTEXT_TOKENS = 1024;
const TOKENS = 260;
/** No vocabulary has it: llama.cpp refuses the batch that it is in. */
const IMPOSSIBLE_TOKEN = 1_000_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
let evaluator: LlamaEvaluator;
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(path, TINY_MARKERS);
  ({ evaluator } = await loadOnCpu(path, { context_tokens: CONTEXT_TOKENS, queue_limit: 4 }));
});
afterAll(async () => {
  await evaluator.close();
  await directory[Symbol.asyncDispose]();
});

const token = fc.integer({ min: 0, max: TOKENS - 1 });
const branch: fc.Arbitrary<Branch> = fc.array(token, { minLength: 1, maxLength: 40 }).chain((tokens) =>
  fc.record({
    tokens: fc.constant(tokens),
    reads: fc.array(
      fc.record({
        index: fc.nat({ max: tokens.length - 1 }),
        tokens: fc.array(token, { minLength: 1, maxLength: 3 }),
      }),
      { maxLength: 4 },
    ),
  }),
);
const plan: fc.Arbitrary<Plan> = fc.record({
  prefix: fc.array(token, { maxLength: 60 }),
  branches: fc.array(branch, { minLength: 1, maxLength: 5 }),
});

const PLAIN: Plan = {
  prefix: [1, 2, 3],
  branches: [{ tokens: [4, 5], reads: [{ index: 1, tokens: [7, 8] }] }],
};

test('a branch gets the same bits alone, among others, and read again', async () => {
  let scope = 0;
  const fresh = () => ({ scope: `scope ${scope++}` });
  await fc.assert(
    fc.asyncProperty(plan, async (whole) => {
      const together = await evaluator.evaluate(whole, fresh());
      expect(together.map((reads) => reads.map((logits) => logits.length))).toEqual(
        whole.branches.map(({ reads }) => reads.map((read) => read.tokens.length)),
      );
      for (const [index, one] of whole.branches.entries()) {
        const alone = await evaluator.evaluate({ prefix: whole.prefix, branches: [one] }, fresh());
        expect(alone).toEqual([together[index] ?? []]);
      }
      const held = fresh();
      expect(await evaluator.evaluate(whole, held)).toEqual(together);
      // The second time the prefix is still in memory and is not read again.
      expect(await evaluator.evaluate(whole, held)).toEqual(together);
    }),
    { numRuns: 25 },
  );
});

test('a prefix is read once for all its branches, and again for any other scope', async () => {
  const three = { ...PLAIN, branches: [...PLAIN.branches, ...PLAIN.branches, ...PLAIN.branches] };
  const readBy = async (run: () => Promise<unknown>) => {
    const before = evaluator.counts();
    await run();
    const after = evaluator.counts();
    return [after.read_tokens - before.read_tokens, after.reused_tokens - before.reused_tokens];
  };
  expect(await readBy(() => evaluator.evaluate(three, { scope: 'one' }))).toEqual([3 + 3 * 2, 0]);
  expect(await readBy(() => evaluator.evaluate(three, { scope: 'one' }))).toEqual([3 * 2, 3]);
  expect(await readBy(() => evaluator.evaluate(three, { scope: 'two' }))).toEqual([3 + 3 * 2, 0]);
  expect(await readBy(() => evaluator.evaluate(three, { scope: 'one' }))).toEqual([3 + 3 * 2, 0]);
});

test('a read sees the tokens before it and nothing after it', async () => {
  const short = { prefix: [1, 2, 3], branches: [{ tokens: [4, 5], reads: [{ index: 0, tokens: [7] }] }] };
  const [[read] = []] = await evaluator.evaluate(short, { scope: 'a' });
  const other_prefix = await evaluator.evaluate({ ...short, prefix: [1, 9, 3] }, { scope: 'a' });
  expect(other_prefix[0]?.[0]).not.toEqual(read);
  const other_end = await evaluator.evaluate(
    { ...short, branches: [{ tokens: [4, 99], reads: [{ index: 0, tokens: [7] }] }] },
    { scope: 'a' },
  );
  expect(other_end[0]?.[0]?.[0]).toBeCloseTo(read?.[0] ?? Number.NaN, 4);
});

test.each([
  ['in the prefix', { ...PLAIN, prefix: [1, IMPOSSIBLE_TOKEN] }],
  [
    'in the second batch of a long prefix',
    { ...PLAIN, prefix: [...Array.from({ length: 700 }, () => 9), IMPOSSIBLE_TOKEN] },
  ],
  ['in a branch', { ...PLAIN, branches: [...PLAIN.branches, { tokens: [IMPOSSIBLE_TOKEN], reads: [] }] }],
  [
    'among the logits wanted',
    { ...PLAIN, branches: [{ tokens: [4], reads: [{ index: 0, tokens: [IMPOSSIBLE_TOKEN] }] }] },
  ],
  ['that is no number of a token', { ...PLAIN, prefix: [1.5] }],
])('a token that cannot be %s fails its own plan only', async (_, failing) => {
  const expected = await evaluator.evaluate(PLAIN, { scope: 'before' });
  const results = await Promise.allSettled([
    evaluator.evaluate(PLAIN, { scope: 'a' }),
    evaluator.evaluate(failing, { scope: 'a' }),
    evaluator.evaluate(PLAIN, { scope: 'a' }),
  ]);
  expect(results[0]).toEqual({ status: 'fulfilled', value: expected });
  expect(results[1]).toMatchObject({ status: 'rejected', reason: expect.any(EvaluationFailed) });
  expect(results[2]).toEqual({ status: 'fulfilled', value: expected });
});

test('a plan may use every position that there is, and none more', async () => {
  const prefix = Array.from({ length: CONTEXT_TOKENS - 2 }, (_, index) => index % TOKENS);
  const full = await evaluator.evaluate({ ...PLAIN, prefix }, { scope: 'a' });
  expect(full[0]?.[0]?.every(Number.isFinite)).toBe(true);
  const over = evaluator.evaluate({ ...PLAIN, prefix: [...prefix, 1] }, { scope: 'a' });
  await expect(over).rejects.toBeInstanceOf(EvaluationFailed);
});

test('what is aborted while it waits is rejected with the reason, and a full queue refuses', async () => {
  const aborted = new AbortController();
  const running = evaluator.evaluate(PLAIN, { scope: 'a' });
  const waiting = evaluator.evaluate(PLAIN, { scope: 'a', signal: aborted.signal });
  const others = [1, 2, 3].map(() => evaluator.evaluate(PLAIN, { scope: 'a' }));
  const refused = evaluator.evaluate(PLAIN, { scope: 'a' });
  aborted.abort(new Error('gone'));
  await expect(refused).rejects.toBeInstanceOf(EngineOverloaded);
  await expect(waiting).rejects.toThrow('gone');
  const answered = await running;
  expect(await Promise.all(others)).toEqual([answered, answered, answered]);
});

test('closing rejects what waits', async () => {
  const { evaluator: closing } = await loadOnCpu(path, { context_tokens: 64 });
  const plans = [closing.evaluate(PLAIN, { scope: 'a' }), closing.evaluate(PLAIN, { scope: 'a' })];
  const settled = Promise.allSettled(plans);
  await closing.close();
  const [, waiting] = await settled;
  expect(waiting).toMatchObject({ status: 'rejected', reason: expect.any(EvaluationFailed) });
  await expect(closing.evaluate(PLAIN, { scope: 'a' })).rejects.toBeInstanceOf(EvaluationFailed);
});
