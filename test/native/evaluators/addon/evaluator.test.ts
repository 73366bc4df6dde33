import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { EngineFailed, EngineOverloaded, EvaluationFailed } from '../../../../native/errors.ts';
import {
  type AddonEvaluator,
  type AddonEvaluatorOptions,
  createAddonEvaluator,
} from '../../../../native/evaluators/addon/addon-evaluator.ts';
import { type Plan, planTokens } from '../../../../native/plan/plan.ts';
import type { DecoderSize } from '../../../../native/plan-evaluator.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import {
  arbitraryPlan,
  describeAddon,
  filledPlan,
  probabilityDistance,
  withLastReads,
} from '../../addon/support.ts';
import { largestDistance } from '../../support/distances.ts';
import { tinyModelBytes, writeTinyModel } from '../../support/gguf.ts';
import { loadOnCpu, TINY_CHAT, TINY_MARKERS, TINY_SCALED, TINY_SLIDING } from '../../support/models.ts';

// The first test builds the addon.
setDefaultTimeout(180_000);

const CONTEXT_TOKENS = 5000;
const TOKENS = 260;
const FAULT_TOKEN = 8;
const READ_FAULT_TOKEN = 200;
/** No vocabulary has it. */
const IMPOSSIBLE_TOKEN = 1_000_000;

const PLAIN: Plan = filledPlan(1, { prefix: 90, branches: [20, 30] });
const PLAIN_TOKENS = planTokens(PLAIN);
/** Too long for the decoder of small plans. */
const LONG: Plan = filledPlan(2, { prefix: 4000, branches: [20] });
const repeated = (count: number, length: number): readonly number[] =>
  Array.from({ length: count }, () => length);
/** 64 questions of 255 options, every token of which is read. */
const WIDE: Plan = (() => {
  const { prefix, branches } = filledPlan(3, {
    prefix: 3900,
    branches: repeated(64, 255),
  });
  const reads = Array.from({ length: 255 }, (_, index) => ({ index, tokens: [7, 8] }));
  return { prefix, branches: branches.map(({ tokens }) => ({ tokens, reads })) };
})();

describeAddon('the addon evaluates plans', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let path: string;
  let evaluator: AddonEvaluator;
  const open = (options: Partial<AddonEvaluatorOptions> = {}) =>
    createAddonEvaluator({
      model_path: path,
      context_tokens: CONTEXT_TOKENS,
      gpu: false,
      threads: 1,
      ...options,
    });
  let scopes = 0;
  const fresh = () => ({ scope: `scope ${scopes++}` });

  beforeAll(async () => {
    directory = await temporaryDirectory();
    path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, { ...TINY_MARKERS, context_tokens: 8192 });
    evaluator = await open();
  });
  afterAll(async () => {
    await evaluator.close();
    await directory[Symbol.asyncDispose]();
  });

  const token = fc.integer({ min: 0, max: TOKENS - 1 });
  const plan = arbitraryPlan(token, { prefix: 200, branch: 90, branches: 6 });

  test('a branch gets the same bits alone, among others in any order, and with the prefix read before', async () => {
    await fc.assert(
      fc.asyncProperty(plan, fc.infiniteStream(fc.nat()), async (whole, numbers) => {
        const together = await evaluator.evaluate(whole, fresh());
        const order = whole.branches
          .map((_, index) => ({ index, key: numbers.next().value ?? 0 }))
          .sort((left, right) => left.key - right.key)
          .map(({ index }) => index);
        const shuffled = await evaluator.evaluate(
          { ...whole, branches: order.flatMap((index) => whole.branches[index] ?? []) },
          fresh(),
        );
        expect(shuffled).toEqual(order.map((index) => together[index] ?? []));
        for (const [index, one] of whole.branches.entries()) {
          const alone = await evaluator.evaluate({ prefix: whole.prefix, branches: [one] }, fresh());
          expect(alone).toEqual([together[index] ?? []]);
        }
        const held = fresh();
        expect(await evaluator.evaluate(whole, held)).toEqual(together);
        expect(await evaluator.evaluate(whole, held)).toEqual(together);
      }),
      { numRuns: 20 },
    );
  });

  test('a record as long as they come is read, and once more from memory with other questions: the same bits', async () => {
    const tokens = 16_000;
    const model_path = join(directory.path, 'long.gguf');
    await writeTinyModel(model_path, { ...TINY_MARKERS, context_tokens: 16_384 });
    const whole = await open({ model_path, context_tokens: 16_384 });
    try {
      const plan = filledPlan(4, { prefix: tokens, branches: [30] });
      const others = filledPlan(5, { prefix: 0, branches: [240, 7] });
      const [alone] = await whole.evaluate(plan, { scope: 'one' });
      const again = { ...plan, branches: [...others.branches, ...plan.branches] };
      expect((await whole.evaluate(again, { scope: 'one' })).at(-1)).toEqual(alone ?? []);
      expect(whole.stats().reused_tokens).toBe(tokens);
    } finally {
      await whole.close();
    }
  });

  test.each([
    ['one plan at a time', {}],
    ['many plans in a decode', { full_decodes: true }],
  ])('plans get the same bits under load as alone: %s', async (_, options) => {
    const loaded = await open(options);
    await fc.assert(
      fc.asyncProperty(fc.array(plan, { minLength: 2, maxLength: 12, size: 'max' }), async (plans) => {
        const alone = [];
        for (const one of plans) alone.push(await loaded.evaluate(one, fresh()));
        const long = loaded.evaluate(LONG, fresh());
        expect(await Promise.all(plans.map((one) => loaded.evaluate(one, fresh())))).toEqual(alone);
        await long;
      }),
      { numRuns: 4 },
    );
    await loaded.close();
  });

  test("a logit that is no number fails its plan: it is nobody's probability", async () => {
    const bytes = tinyModelBytes({ ...TINY_MARKERS, context_tokens: 8192 });
    // The last weight of the last layer: every token goes through it.
    bytes.writeFloatLE(Number.NaN, bytes.length - 4);
    const model_path = join(directory.path, 'broken.gguf');
    await writeFile(model_path, bytes);
    const broken = await open({ model_path });
    const rejected: unknown = await broken.evaluate(PLAIN, fresh()).catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(EvaluationFailed);
    expect(rejected).not.toBeInstanceOf(EngineFailed);
    await broken.close();
  });

  test('a plan answers as through node-llama-cpp', async () => {
    const { evaluator: llama } = await loadOnCpu(path);
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const last = withLastReads(whole);
        const distance = probabilityDistance(
          await evaluator.evaluate(last, fresh()),
          await llama.evaluate(last, fresh()),
        );
        expect(distance).toBeLessThanOrEqual(1e-3);
      }),
      { numRuns: 10 },
    );
    await llama.close();
  });

  test('a model whose logits are more than a matrix product is read through all of its vocabulary', async () => {
    const scaled_path = join(directory.path, 'scaled.gguf');
    await writeTinyModel(scaled_path, TINY_SCALED);
    const scaled = await open({ model_path: scaled_path, context_tokens: 1024 });
    const { evaluator: llama } = await loadOnCpu(scaled_path);
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const logits = await scaled.evaluate(whole, fresh());
        const expected = await llama.evaluate(whole, fresh());
        expect(largestDistance(logits.flat(2), expected.flat(2))).toBeLessThanOrEqual(1e-2);
      }),
      { numRuns: 5 },
    );
    await llama.close();
    await scaled.close();
  });

  test('results have the shape that was asked for, read by read', async () => {
    const odd: Plan = {
      prefix: [],
      branches: [
        { tokens: [], reads: [] },
        { tokens: [4, 5, 6], reads: [] },
        {
          tokens: [4, 5, 6],
          reads: [
            { index: 2, tokens: [7] },
            { index: 0, tokens: [] },
            { index: 0, tokens: [8, 7] },
            { index: 2, tokens: [9, 7] },
          ],
        },
      ],
    };
    const logits = await evaluator.evaluate(odd, fresh());
    expect(logits.map((reads) => reads.map((values) => values.length))).toEqual([[], [], [1, 0, 2, 2]]);
    const [, , reads] = logits;
    expect(reads?.[0]?.[0]).toBe(reads?.[3]?.[1] ?? Number.NaN);
    const [[first] = []] = await evaluator.evaluate(
      { prefix: [], branches: [{ tokens: [4], reads: [{ index: 0, tokens: [8, 7] }] }] },
      fresh(),
    );
    expect(reads?.[2]).toEqual(first ?? []);
    expect(await evaluator.evaluate({ prefix: [1], branches: [] }, fresh())).toEqual([]);
  });

  test('64 questions of 255 options over a long record go through one cache in waves', async () => {
    const logits = await evaluator.evaluate(WIDE, fresh());
    expect(logits.map((reads) => reads.length)).toEqual(WIDE.branches.map(() => 255));
    const chosen = WIDE.branches.slice(40, 41);
    expect(await evaluator.evaluate({ ...WIDE, branches: chosen }, fresh())).toEqual(logits.slice(40, 41));
  });

  test('a plan may use every position that there is, and none more', async () => {
    const full = filledPlan(4, { prefix: CONTEXT_TOKENS - 30, branches: [30, 3] });
    const logits = await evaluator.evaluate(full, fresh());
    expect(logits.flat(2).every(Number.isFinite)).toBe(true);
    const over = evaluator.evaluate({ ...full, prefix: [...full.prefix, 9] }, fresh());
    await expect(over).rejects.toBeInstanceOf(EvaluationFailed);
  });

  test('a context of hundreds of thousands of tokens may be used whole, and gives the bits of a small one', async () => {
    const context_tokens = 2 ** 18;
    const model_path = join(directory.path, 'longest.gguf');
    const shape = { width: 32, heads: 2, cache_heads: 1, hidden: 32, quantized: false };
    await writeTinyModel(model_path, { ...TINY_MARKERS, context_tokens, layers: 1, shape });
    const longest = await open({ model_path, context_tokens });
    const small = await open({ model_path });
    const common = filledPlan(6, { prefix: 4500, branches: [30, 200] });
    expect(await longest.evaluate(common, fresh())).toEqual(await small.evaluate(common, fresh()));
    await small.close();
    const branches = Array.from({ length: 64 }, () => 30);
    const whole = filledPlan(7, { prefix: context_tokens - 30, branches });
    const aborted = new AbortController();
    let failure: unknown;
    const before = longest.stats().decoded_tokens;
    const evaluation = longest
      .evaluate(whole, { ...fresh(), signal: aborted.signal })
      .catch((error: unknown) => {
        failure = error;
      });
    // All of it would take minutes; what does not fit is refused before the first decode.
    while (failure === undefined && longest.stats().decoded_tokens === before) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    aborted.abort(new Error('begun'));
    await evaluation;
    expect(failure).toEqual(new Error('begun'));
    await longest.close();
  });

  test('a prefix is reused within its scope only, and only when it is the whole prefix', async () => {
    const before = evaluator.stats().decoded_tokens;
    const decoded = () => evaluator.stats().decoded_tokens - before;
    const branches = PLAIN_TOKENS - PLAIN.prefix.length;
    const scope = fresh();
    const first = await evaluator.evaluate(PLAIN, scope);
    expect(decoded()).toBe(PLAIN_TOKENS);
    expect(await evaluator.evaluate(PLAIN, scope)).toEqual(first);
    expect(decoded()).toBe(PLAIN_TOKENS + branches);
    expect(await evaluator.evaluate(PLAIN, fresh())).toEqual(first);
    expect(decoded()).toBe(2 * PLAIN_TOKENS + branches);
    await evaluator.evaluate({ ...PLAIN, prefix: PLAIN.prefix.slice(1) }, scope);
    expect(decoded()).toBe(3 * PLAIN_TOKENS + branches - 1);
  });

  test('prefixes that were read in one decode are all reused', async () => {
    const shared = await open({ full_decodes: true });
    const plans = Array.from({ length: 30 }, (_, seed) => filledPlan(seed, { prefix: 20, branches: [5, 5] }));
    const evaluate = () => Promise.all(plans.map((one) => shared.evaluate(one, { scope: 'a' })));
    const first = await evaluate();
    const { decodes, reused_tokens } = shared.stats();
    expect({ few: decodes < plans.length / 2, reused_tokens }).toEqual({ few: true, reused_tokens: 0 });
    expect(await evaluate()).toEqual(first);
    expect(shared.stats().reused_tokens).toBe(plans.length * 20);
    await shared.close();
  });

  test('a prefix that another plan of its scope is reading is read once, and gives the same bits', async () => {
    const shared = await open({ full_decodes: true });
    const plans = Array.from({ length: 8 }, (_, seed) => {
      const { branches } = filledPlan(seed, { prefix: 0, branches: [7] });
      return { prefix: PLAIN.prefix, branches };
    });
    const [first = PLAIN] = plans;
    const alone = [];
    for (const plan of plans) alone.push(await shared.evaluate(plan, fresh()));
    const [scope, other] = [fresh(), fresh()];
    const before = shared.stats();
    const together = await Promise.all([
      ...plans.map((plan) => shared.evaluate(plan, scope)),
      shared.evaluate(first, other),
    ]);
    expect(together.slice(0, -1)).toEqual(alone);
    expect(together.at(-1)).toEqual(alone[0] ?? []);
    const after = shared.stats();
    expect({
      read: after.decoded_tokens - before.decoded_tokens,
      reused: after.reused_tokens - before.reused_tokens,
    }).toEqual({ read: 2 * PLAIN.prefix.length + 9 * 7, reused: 7 * PLAIN.prefix.length });
    await shared.close();
  });

  test('a plan that waits for a prefix is answered when the one that reads it is cancelled', async () => {
    const shared = await open({ full_decodes: true });
    const [expected] = await shared.evaluate(LONG, fresh());
    const scope = fresh();
    const cancelled = new AbortController();
    const reading = shared.evaluate(LONG, { ...scope, signal: cancelled.signal });
    const waiting = shared.evaluate(LONG, scope);
    // Of another scope, so it is answered while the prefix is read.
    await shared.evaluate(PLAIN, fresh());
    cancelled.abort(new Error('left'));
    expect(await reading.catch((error: unknown) => error)).toEqual(new Error('left'));
    expect(await waiting).toEqual([expected ?? []]);
    expect(shared.stats().reused_tokens).toBe(0);
    await shared.close();
  });

  test('batches are counted by their size, and the cells of all decoders by their bytes', async () => {
    const measured = await open();
    const { kv_cache_bytes, ...before } = measured.stats();
    await measured.evaluate(filledPlan(1, { prefix: 100, branches: [29] }), fresh());
    const { batches, batched_tokens, decodes, decoded_tokens } = measured.stats();
    // Alone, a plan of at most 256 tokens is one decode, and one of more than 128 is of the ninth size.
    expect(Array.from(batches, (count, size) => count - (before.batches[size] ?? 0))).toEqual(
      Array.from(batches, (_, size) => Number(size === 8)),
    );
    expect(batches.reduce((sum, count) => sum + count)).toBe(decodes);
    expect(batched_tokens - before.batched_tokens).toBe(129);
    expect(decoded_tokens - before.decoded_tokens).toBe(129);
    // Two layers of 64 keys and as many values in 16 bits a cell, and a little for the rest.
    const cells = kv_cache_bytes / 512;
    expect(cells).toBeGreaterThan(measured.context_tokens);
    await measured.close();
    const longer = await open({ context_tokens: 2 * measured.context_tokens });
    expect(longer.stats().kv_cache_bytes).toBeGreaterThan(kv_cache_bytes);
    await longer.close();
  });

  test('prefixes beyond the bytes that are kept are forgotten, the least recently used first', async () => {
    const plans = [5, 6, 7].map((seed) => filledPlan(seed, { prefix: PLAIN.prefix.length, branches: [5] }));
    const [a = PLAIN, b = PLAIN, c = PLAIN] = plans;
    const scope = fresh();
    const measured = await open();
    await measured.evaluate(a, scope);
    const one = measured.stats().kept_prefix_bytes;
    // Two layers of 64 keys and as many values in 16 bits a token, and a little for the rest.
    expect(one).toBeGreaterThan(PLAIN.prefix.length * 512);
    expect(one).toBeLessThan(PLAIN.prefix.length * 768);
    await measured.close();

    const small = await open({ prefix_cache_bytes: 2 * one });
    for (const plan of [a, b, a, c]) await small.evaluate(plan, scope);
    const { reused_tokens, kept_prefix_bytes } = small.stats();
    expect({ reused_tokens, kept_prefix_bytes }).toEqual({
      reused_tokens: PLAIN.prefix.length,
      kept_prefix_bytes: 2 * one,
    });
    await small.evaluate(a, scope);
    expect(small.stats().reused_tokens).toBe(2 * PLAIN.prefix.length);
    await small.evaluate(b, scope);
    expect(small.stats().reused_tokens).toBe(2 * PLAIN.prefix.length);
    await small.close();
  });

  test('a prefix that its tokens make too large, though its state is not, takes no place of another', async () => {
    const long = filledPlan(5, { prefix: 400, branches: [5] });
    const scope = fresh();
    const measured = await open();
    await measured.evaluate(long, scope);
    const needed = measured.stats().kept_prefix_bytes;
    await measured.close();

    const small = await open({ prefix_cache_bytes: needed - 1 });
    await small.evaluate(PLAIN, scope);
    const { kept_prefix_bytes } = small.stats();
    expect(kept_prefix_bytes).toBeGreaterThan(0);
    await small.evaluate(long, scope);
    expect(small.stats().kept_prefix_bytes).toBe(kept_prefix_bytes);
    await small.evaluate(PLAIN, scope);
    expect(small.stats().reused_tokens).toBe(PLAIN.prefix.length);
    await small.close();
  });

  test('prefixes of any lengths never have more bytes than are allowed, and one that is too long alone is not kept', async () => {
    const limit = 100_000;
    const bounded = await open({ prefix_cache_bytes: limit });
    let largest = 0;
    for (const [seed, prefix] of [30, 150, 1, 90, 1000, 149, 20, 64, 65, 120].entries()) {
      const before = bounded.stats().kept_prefix_bytes;
      await bounded.evaluate(filledPlan(seed, { prefix, branches: [5] }), { scope: `scope ${prefix}` });
      const { kept_prefix_bytes } = bounded.stats();
      expect(kept_prefix_bytes).toBeLessThanOrEqual(limit);
      if (prefix === 1000) expect(kept_prefix_bytes).toBe(before);
      largest = Math.max(largest, kept_prefix_bytes);
    }
    expect(largest).toBeGreaterThan(limit / 2);
    await bounded.close();

    const none = await open({ prefix_cache_bytes: 0 });
    for (const _ of [1, 2]) await none.evaluate(PLAIN, { scope: 'a' });
    expect(none.stats()).toMatchObject({ reused_tokens: 0, kept_prefix_bytes: 0 });
    await none.close();
  });

  test.each([
    ['in the prefix', { ...PLAIN, prefix: [1, IMPOSSIBLE_TOKEN] }],
    ['in a branch', { ...PLAIN, branches: [...PLAIN.branches, { tokens: [IMPOSSIBLE_TOKEN], reads: [] }] }],
    ['that is negative', { ...PLAIN, prefix: [1, -1] }],
    ['that is no integer', { ...PLAIN, prefix: [1.5] }],
    ['beyond 32 bits', { ...PLAIN, prefix: [2 ** 32] }],
    [
      'among those wanted',
      { ...PLAIN, branches: [{ tokens: [4], reads: [{ index: 0, tokens: [IMPOSSIBLE_TOKEN] }] }] },
    ],
    [
      'read outside of its branch',
      { ...PLAIN, branches: [{ tokens: [4], reads: [{ index: 1, tokens: [7] }] }] },
    ],
  ])('a token %s fails its own plan only', async (_, failing) => {
    const expected = await evaluator.evaluate(PLAIN, fresh());
    const results = await Promise.allSettled(
      [PLAIN, failing, PLAIN].map((one) => evaluator.evaluate(one, { scope: 'a' })),
    );
    expect(results[0]).toEqual({ status: 'fulfilled', value: expected });
    expect(results[1]).toMatchObject({ status: 'rejected', reason: expect.any(EvaluationFailed) });
    expect(results[1]).not.toMatchObject({ reason: expect.any(EngineFailed) });
    expect(results[2]).toEqual({ status: 'fulfilled', value: expected });
  });

  test.each([
    ['a prefix', { ...PLAIN, prefix: [...PLAIN.prefix, FAULT_TOKEN] }],
    ['a branch', { ...PLAIN, branches: [{ tokens: [FAULT_TOKEN], reads: [{ index: 0, tokens: [7] }] }] }],
    ['a long prefix', { ...LONG, prefix: [...LONG.prefix, FAULT_TOKEN] }],
  ])('a decode that fails in %s fails its own plan only', async (_, failing) => {
    const faulty = await open({ full_decodes: true, fault_token: FAULT_TOKEN });
    const expected = await evaluator.evaluate(PLAIN, fresh());
    const results = await Promise.allSettled(
      [PLAIN, failing, PLAIN, LONG, failing, PLAIN].map((one) => faulty.evaluate(one, fresh())),
    );
    const answered = { status: 'fulfilled', value: expected } as const;
    expect(results[0]).toEqual(answered);
    expect(results[1]).toMatchObject({ status: 'rejected', reason: expect.any(EngineFailed) });
    expect(results[2]).toEqual(answered);
    expect(results[3]?.status).toBe('fulfilled');
    expect(results[4]?.status).toBe('rejected');
    expect(results[5]).toEqual(answered);
    await faulty.close();
  });

  test('logits that cannot be read fail their own plan only, and what is read next is right', async () => {
    const faulty = await open({ full_decodes: true, read_fault_token: READ_FAULT_TOKEN });
    const failing: Plan = {
      ...PLAIN,
      branches: [...PLAIN.branches, { tokens: [4, 5], reads: [{ index: 1, tokens: [7, READ_FAULT_TOKEN] }] }],
    };
    const expected = await evaluator.evaluate(PLAIN, fresh());
    const plans = [PLAIN, failing, PLAIN, LONG, failing, PLAIN, PLAIN];
    const results = await Promise.allSettled(plans.map((one) => faulty.evaluate(one, fresh())));
    for (const [index, one] of plans.entries()) {
      const result = results[index];
      if (one === failing) {
        expect(result).toMatchObject({ status: 'rejected', reason: expect.any(EvaluationFailed) });
      } else if (one === PLAIN) {
        expect(result).toEqual({ status: 'fulfilled', value: expected });
      } else {
        expect(result?.status).toBe('fulfilled');
      }
    }
    for (const _ of [1, 2]) expect(await faulty.evaluate(PLAIN, fresh())).toEqual(expected);
    await faulty.close();
  });

  test('plans that start between the waves of another leave it sequences enough, and none starts over', async () => {
    const model_path = join(directory.path, 'sections.gguf');
    // Plans of this kind lie in any cells, as on a GPU, so that many have room at once.
    const metadata = { 'qwen2vl.rope.dimension_sections': { type: 'i32s', value: [8, 4, 4, 0] } } as const;
    await writeTinyModel(model_path, { ...TINY_MARKERS, architecture: 'qwen2vl', metadata });
    const loaded = await open({ model_path, full_decodes: true });
    const plans = [
      // A wave of few long branches, and a later one of many short ones.
      filledPlan(1, { prefix: 4, branches: [...repeated(4, 255), ...repeated(80, 1)] }),
      ...[2, 3, 4].map((seed) => filledPlan(seed, { prefix: 4, branches: repeated(64, 1) })),
    ];
    const { read_tokens } = loaded.counts();
    await Promise.all(plans.map((one) => loaded.evaluate(one, fresh())));
    expect(loaded.counts().read_tokens - read_tokens).toBe(
      plans.map(planTokens).reduce((sum, tokens) => sum + tokens),
    );
    await loaded.close();
  });

  test('a full queue refuses, and what is aborted gives its place up', async () => {
    const small = await open({ queue_limit: 3 });
    const start = (one: Plan) => {
      const aborted = new AbortController();
      const result = small.evaluate(one, { ...fresh(), signal: aborted.signal });
      result.catch(() => {});
      return { result, abort: () => aborted.abort(new Error('gone')) };
    };
    // It occupies the decoder of large plans for longer than the others take to be refused.
    const running = start(WIDE);
    await small.evaluate(PLAIN, fresh());
    const waiting = [LONG, LONG, LONG].map(start);
    const refused = start(LONG);
    await expect(refused.result).rejects.toBeInstanceOf(EngineOverloaded);
    for (const one of [...waiting, running]) one.abort();
    for (const { result } of [...waiting, running]) await expect(result).rejects.toThrow('gone');
    expect(await small.evaluate(LONG, fresh())).toHaveLength(1);
    expect(small.stats().waiting_plans).toBe(0);
    await small.close();
  });

  test('a running plan that is aborted stops between its chunks', async () => {
    const aborted = new AbortController();
    // It takes seconds, so that it still runs when it is aborted, however late this thread gets its turn.
    const running = evaluator.evaluate(WIDE, { ...fresh(), signal: aborted.signal });
    const before = evaluator.stats().decoded_tokens;
    await evaluator.evaluate(PLAIN, fresh());
    aborted.abort(new Error('gone'));
    await expect(running).rejects.toThrow('gone');
    await evaluator.evaluate(PLAIN, fresh());
    expect(evaluator.stats().decoded_tokens - before).toBeLessThan(planTokens(WIDE));
    const late = new AbortController();
    late.abort(new Error('too late'));
    await expect(evaluator.evaluate(PLAIN, { ...fresh(), signal: late.signal })).rejects.toThrow('too late');
  });

  test.each<[string, Plan, DecoderSize]>([
    ['a short one', PLAIN, 'small'],
    ['a long one', LONG, 'large'],
    // Branches are read in waves, so that many of them take no more room than some.
    ['many branches', filledPlan(1, { prefix: 1, branches: repeated(20, 300) }), 'small'],
    [
      'a wave that shrinks to the room beside its prefix',
      filledPlan(1, { prefix: 3_200, branches: repeated(20, 50) }),
      'small',
    ],
    ['all that the cells take', filledPlan(1, { prefix: 3_968, branches: [64] }), 'small'],
    ['a token more', filledPlan(1, { prefix: 3_969, branches: [64] }), 'large'],
    ['a token more in the branch', filledPlan(1, { prefix: 3_968, branches: [65] }), 'large'],
  ])('a plan is of the decoder that reads it: %s', async (_, plan, decoder) => {
    expect(evaluator.decoderOf(plan)).toBe(decoder);
    const before = evaluator.stats().batches;
    await evaluator.evaluate(plan, fresh());
    const largest = evaluator.stats().batches.findLastIndex((count, size) => count > (before[size] ?? 0));
    // Alone, the decoder of small plans takes up to 512 tokens at once, and that of large ones 128.
    expect(2 ** largest > 128 ? 'small' : 'large').toBe(decoder);
  });

  test('a plan without a read is small, and one that is malformed has no decoder', () => {
    expect(evaluator.decoderOf({ prefix: [], branches: [] })).toBe('small');
    const malformed = { ...PLAIN, prefix: [IMPOSSIBLE_TOKEN] };
    expect(() => evaluator.decoderOf(malformed)).toThrow(EvaluationFailed);
  });

  test('small plans are not held up by large ones', async () => {
    const large = [0, 1].map(() => evaluator.evaluate(LONG, fresh()).then(() => 'large'));
    const small = Array.from({ length: 8 }, () => evaluator.evaluate(PLAIN, fresh()).then(() => 'small'));
    const done: string[] = [];
    await Promise.all([...large, ...small].map(async (one) => done.push(await one)));
    expect(done.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => 'small'));
  });

  test('plans of one size are answered in the order that they came', async () => {
    const done: number[] = [];
    await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        await evaluator.evaluate(filledPlan(index, { prefix: 100, branches: [10] }), fresh());
        done.push(index);
      }),
    );
    expect(done).toEqual(Array.from({ length: 12 }, (_, index) => index));
  });

  test('closing while busy rejects what is not done, and frees the model', async () => {
    const closing = await open();
    const settled = Promise.allSettled([LONG, PLAIN, LONG].map((one) => closing.evaluate(one, fresh())));
    await Promise.all([closing.close(), closing.close()]);
    for (const result of await settled) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(EngineFailed);
    }
    expect((await settled)[2]?.status).toBe('rejected');
    await expect(closing.evaluate(PLAIN, fresh())).rejects.toBeInstanceOf(EngineFailed);
    expect(() => closing.stats()).toThrow();
  });

  test('weights that are none are refused with their path', async () => {
    const missing = join(directory.path, 'missing.gguf');
    await expect(open({ model_path: missing })).rejects.toThrow(missing);
  });

  test('a model that keeps nothing of a record is refused, because its questions would not see it', async () => {
    const model_path = join(directory.path, 'encoder.gguf');
    await writeTinyModel(model_path, { ...TINY_CHAT, architecture: 'eurobert' });
    await expect(open({ model_path })).rejects.toThrow('keeps no cache of a record');
  });

  test('why weights are refused is not what other models log meanwhile', async () => {
    const words = Array.from({ length: 60_000 }, (_, index) => `w${index}`);
    const bytes = tinyModelBytes({ ...TINY_MARKERS, words });
    // It is missed only after the large vocabulary has been read.
    bytes.write('output_nurm.weight', bytes.indexOf('output_norm.weight'));
    const refused_path = join(directory.path, 'refused.gguf');
    await writeFile(refused_path, bytes);
    const busy = await Promise.all(Array.from({ length: 6 }, () => open()));
    const given_up = Promise.allSettled(busy.map((one) => one.evaluate(WIDE, fresh())));
    const refused: Promise<unknown> = open({ model_path: refused_path }).catch((error: unknown) => error);
    // Each of them logs that its decode was stopped.
    for (const one of busy) await one.close();
    await given_up;
    expect(String(await refused)).toContain('output_norm.weight');
  });

  test('deterministic: the same bits whatever else is asked', async () => {
    const separate = await open({ deterministic: true });
    await fc.assert(
      fc.asyncProperty(plan, async (whole) => {
        const alone = [];
        for (const one of whole.branches) {
          alone.push(...(await separate.evaluate({ prefix: whole.prefix, branches: [one] }, fresh())));
        }
        const others = [LONG, PLAIN].map((one) => separate.evaluate(one, fresh()));
        expect(await separate.evaluate(whole, fresh())).toEqual(alone);
        await Promise.all(others);
      }),
      { numRuns: 5 },
    );
    await separate.close();
  });

  test.each([
    ['of this process', false],
    ['that are the same for all', true],
  ])(
    'a model whose layers see a window only answers as through node-llama-cpp, with bits %s',
    async (_, deterministic) => {
      const model_path = join(directory.path, 'sliding.gguf');
      await writeTinyModel(model_path, TINY_SLIDING);
      const sliding = await open({ model_path, deterministic });
      const { evaluator: llama } = await loadOnCpu(model_path);
      await fc.assert(
        fc.asyncProperty(plan, async (whole) => {
          const scope = fresh();
          const first = await sliding.evaluate(whole, scope);
          const again = await sliding.evaluate(whole, scope);
          const expected = await llama.evaluate(whole, fresh());
          expect(largestDistance(again.flat(2), expected.flat(2))).toBeLessThanOrEqual(1e-2);
          if (!deterministic) return;
          expect(again).toEqual(first);
          for (const [index, one] of whole.branches.entries()) {
            const alone = await sliding.evaluate({ prefix: whole.prefix, branches: [one] }, scope);
            expect(alone).toEqual([first[index] ?? []]);
          }
        }),
        { numRuns: 8 },
      );
      await llama.close();
      await sliding.close();
    },
  );
});
