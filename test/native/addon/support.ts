import { describe } from 'bun:test';
import fc from 'fast-check';
import { compilerPath } from '../../../native/addon/build.ts';
import type { Branch, Plan, PlanLogits } from '../../../native/plan/plan.ts';
import { largestDistance } from '../support/distances.ts';
import { type GgufTensor, type GgufValue, ggufBytes } from '../support/gguf.ts';

/** The evaluators that there are on this machine: the addon needs a C++ compiler. */
export const IMPLEMENTATIONS =
  compilerPath() === undefined ? (['llama'] as const) : (['addon', 'llama'] as const);

/** Like `describe`; skips where the addon cannot be built because there is no C++ compiler, and nowhere else. */
export function describeAddon(name: string, body: () => void): void {
  if (compilerPath() === undefined) console.warn(`No C++ compiler: "${name}" is not tested.`);
  describe.skipIf(compilerPath() === undefined)(name, body);
}

/** A branch of up to `longest` tokens with up to four reads, the last token among them. */
export function arbitraryBranch(token: fc.Arbitrary<number>, longest: number): fc.Arbitrary<Branch> {
  return fc.array(token, { minLength: 1, maxLength: longest, size: 'max' }).chain((tokens) =>
    fc.record({
      tokens: fc.constant(tokens),
      reads: fc
        .array(
          fc.record({
            index: fc.nat({ max: tokens.length - 1 }),
            tokens: fc.array(token, { minLength: 1, maxLength: 3 }),
          }),
          { maxLength: 3 },
        )
        .map((reads) => [...reads, { index: tokens.length - 1, tokens: [7, 8] }]),
    }),
  );
}

/** Plans whose parts are long enough to lie in several tiles of the cache, and short enough not to. */
export function arbitraryPlan(
  token: fc.Arbitrary<number>,
  longest: { readonly prefix: number; readonly branch: number; readonly branches: number },
): fc.Arbitrary<Plan> {
  return fc.record({
    prefix: fc.array(token, { maxLength: longest.prefix, size: 'max' }),
    branches: fc.array(arbitraryBranch(token, longest.branch), {
      minLength: 1,
      maxLength: longest.branches,
      size: 'max',
    }),
  });
}

/** A plan of these sizes with tokens that look random; `seed` makes another one. */
export function filledPlan(
  seed: number,
  sizes: { readonly prefix: number; readonly branches: readonly number[] },
  vocabulary = 260,
): Plan {
  let state = seed;
  const tokens = (count: number): number[] =>
    Array.from({ length: count }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return 9 + ((state >>> 8) % (vocabulary - 9));
    });
  return {
    prefix: tokens(sizes.prefix),
    branches: sizes.branches.map((length) => ({
      tokens: tokens(length),
      reads: [{ index: length - 1, tokens: [7, 8] }],
    })),
  };
}

/** The same plan with only the last read of each branch: what `probabilityDistance` compares. */
export function withLastReads(plan: Plan): Plan {
  return {
    ...plan,
    branches: plan.branches.map(({ tokens, reads }) => ({ tokens, reads: reads.slice(-1) })),
  };
}

/** The largest difference between two results in the probability of token 7 against token 8. */
export function probabilityDistance(left: PlanLogits, right: PlanLogits): number {
  const probabilities = (logits: PlanLogits) =>
    logits.flat().map(([yes = Number.NaN, no = Number.NaN]) => 1 / (1 + Math.exp(no - yes)));
  return largestDistance(probabilities(left), probabilities(right));
}

/** Matrices whose weights look random, and norms of ones. */
function randomTensors() {
  let state = 1;
  return {
    matrix: (name: string, columns: number, rows: number): GgufTensor => ({
      name,
      shape: [columns, rows],
      values: Float32Array.from({ length: columns * rows }, () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return (state / 2 ** 31 - 1) * Math.sqrt(3 / columns);
      }),
    }),
    norm: (name: string, width: number): GgufTensor => ({
      name,
      shape: [width],
      values: new Float32Array(width).fill(1),
    }),
  };
}

/** A vocabulary of bytes, in GGUF's words. */
function byteVocabulary() {
  const tokens = ['<|end|>', ...Array.from({ length: 259 }, (_, index) => String.fromCharCode(256 + index))];
  return {
    size: tokens.length,
    metadata: {
      'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
      'tokenizer.ggml.pre': { type: 'string', value: 'gpt-2' },
      'tokenizer.ggml.tokens': { type: 'strings', value: tokens },
      'tokenizer.ggml.token_type': { type: 'i32s', value: tokens.map((_, id) => (id === 0 ? 3 : 1)) },
      'tokenizer.ggml.merges': { type: 'strings', value: [] },
      'tokenizer.ggml.bos_token_id': { type: 'u32', value: 0 },
      'tokenizer.ggml.eos_token_id': { type: 'u32', value: 0 },
    } satisfies Record<string, GgufValue>,
  };
}

/**
 * A model of Granite's kind, which scales its logits after the output matrix: no two rows of it are the logits. Its
 * weights look random, and its vocabulary is bytes.
 */
export function scaledModelBytes(): Buffer {
  const width = 64;
  const hidden = 96;
  const context_tokens = 2048;
  const { matrix, norm } = randomTensors();
  const vocabulary = byteVocabulary();
  return ggufBytes(
    {
      'general.architecture': { type: 'string', value: 'granite' },
      'granite.context_length': { type: 'u32', value: context_tokens },
      'granite.embedding_length': { type: 'u32', value: width },
      'granite.block_count': { type: 'u32', value: 1 },
      'granite.feed_forward_length': { type: 'u32', value: hidden },
      'granite.attention.head_count': { type: 'u32', value: 2 },
      'granite.attention.head_count_kv': { type: 'u32', value: 1 },
      'granite.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
      'granite.rope.dimension_count': { type: 'u32', value: width / 2 },
      'granite.vocab_size': { type: 'u32', value: vocabulary.size },
      'granite.logit_scale': { type: 'f32', value: 4 },
      ...vocabulary.metadata,
    },
    [
      matrix('token_embd.weight', width, vocabulary.size),
      norm('output_norm.weight', width),
      norm('blk.0.attn_norm.weight', width),
      matrix('blk.0.attn_q.weight', width, width),
      matrix('blk.0.attn_k.weight', width, width / 2),
      matrix('blk.0.attn_v.weight', width, width / 2),
      matrix('blk.0.attn_output.weight', width, width),
      norm('blk.0.ffn_norm.weight', width),
      matrix('blk.0.ffn_gate.weight', width, hidden),
      matrix('blk.0.ffn_up.weight', width, hidden),
      matrix('blk.0.ffn_down.weight', hidden, width),
    ],
  );
}

/** A model of Gemma's kind, in one layer of which a token sees no more than the `window` tokens before it. */
export function slidingModelBytes(window: number): Buffer {
  const width = 64;
  const hidden = 96;
  const head = 32;
  const { matrix, norm } = randomTensors();
  const vocabulary = byteVocabulary();
  return ggufBytes(
    {
      'general.architecture': { type: 'string', value: 'gemma3' },
      'gemma3.context_length': { type: 'u32', value: 8192 },
      'gemma3.embedding_length': { type: 'u32', value: width },
      'gemma3.block_count': { type: 'u32', value: 1 },
      'gemma3.feed_forward_length': { type: 'u32', value: hidden },
      'gemma3.attention.head_count': { type: 'u32', value: 2 },
      'gemma3.attention.head_count_kv': { type: 'u32', value: 1 },
      'gemma3.attention.key_length': { type: 'u32', value: head },
      'gemma3.attention.value_length': { type: 'u32', value: head },
      'gemma3.attention.sliding_window': { type: 'u32', value: window },
      'gemma3.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
      'gemma3.rope.dimension_count': { type: 'u32', value: head },
      ...vocabulary.metadata,
    },
    [
      matrix('token_embd.weight', width, vocabulary.size),
      norm('output_norm.weight', width),
      norm('blk.0.attn_norm.weight', width),
      matrix('blk.0.attn_q.weight', width, 2 * head),
      matrix('blk.0.attn_k.weight', width, head),
      matrix('blk.0.attn_v.weight', width, head),
      matrix('blk.0.attn_output.weight', 2 * head, width),
      norm('blk.0.post_attention_norm.weight', width),
      norm('blk.0.attn_q_norm.weight', head),
      norm('blk.0.attn_k_norm.weight', head),
      norm('blk.0.ffn_norm.weight', width),
      matrix('blk.0.ffn_gate.weight', width, hidden),
      matrix('blk.0.ffn_up.weight', width, hidden),
      matrix('blk.0.ffn_down.weight', hidden, width),
      norm('blk.0.post_ffw_norm.weight', width),
    ],
  );
}
