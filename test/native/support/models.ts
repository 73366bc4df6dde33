import { llamaBackend } from '../../../native/evaluators/llama/backend.ts';
import type { LlamaEvaluator } from '../../../native/evaluators/llama/llama-evaluator.ts';
import { loadLlamaEvaluator, loadLlamaTokenizer } from '../../../native/evaluators/llama/load-model.ts';
import { type ModelFacts, readModelFacts } from '../../../native/model-facts.ts';
import type { ModelTokenizer } from '../../../native/model-tokenizer.ts';
import { verifyWeights } from '../../../native/weights.ts';
import type { TinyModel, TinyShape } from './gguf.ts';

/** decision-1's control tokens, at its ids. */
export const MARKER_CONTROL = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<|record|>',
  '<|question|>',
  '<|option|>',
  '<|answer|>',
  '<|yes|>',
  '<|no|>',
] as const;

/** A generated model that is asked by `markers-v1`. */
export const TINY_MARKERS: TinyModel = { control: MARKER_CONTROL, words: [' the', ' is'] };

export const CHATML = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;

/** A generated chat model that is asked by `codes-v1`: 26 letters and two codes of two letters, yes and no. */
export const TINY_CHAT: TinyModel = {
  control: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
  words: [...Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ', (letter) => ` ${letter}`), ' AA', ' AB', ' Yes', ' No'],
  chat_template: CHATML,
};

function t5Layer(
  part: 'enc' | 'dec',
  attentions: readonly string[],
): Readonly<Record<string, readonly number[]>> {
  const matrices = attentions.flatMap((name) => ['q', 'k', 'v', 'o'].map((matrix) => `${name}_${matrix}`));
  return {
    [`${part}.output_norm.weight`]: [64],
    [`${part}.blk.0.attn_rel_b.weight`]: [2, 32],
    ...Object.fromEntries([...attentions, 'ffn'].map((name) => [`${part}.blk.0.${name}_norm.weight`, [64]])),
    ...Object.fromEntries(matrices.map((name) => [`${part}.blk.0.${name}.weight`, [64, 64]])),
    [`${part}.blk.0.ffn_up.weight`]: [64, 128],
    [`${part}.blk.0.ffn_down.weight`]: [128, 64],
  };
}

/** A model of T5's kind: an encoder, and a decoder that also sees what the encoder has read. */
export const TINY_T5: TinyModel = {
  ...TINY_CHAT,
  architecture: 't5',
  layers: 1,
  metadata: { 't5.attention.relative_buckets_count': { type: 'u32', value: 32 } },
  tensors: { ...t5Layer('enc', ['attn']), ...t5Layer('dec', ['attn', 'cross_attn']) },
};

const ONE_CACHE_HEAD: TinyShape = { width: 64, heads: 2, cache_heads: 1, hidden: 96, quantized: false };

/** A model of Granite's kind, which scales its logits after the output matrix: no two rows of it are the logits. */
export const TINY_SCALED: TinyModel = {
  ...TINY_MARKERS,
  architecture: 'granite',
  layers: 1,
  shape: ONE_CACHE_HEAD,
  metadata: { 'granite.logit_scale': { type: 'f32', value: 4 } },
};

/** A model of Gemma's kind, in one layer of which a token sees no more than the 64 tokens before it. */
export const TINY_SLIDING: TinyModel = {
  ...TINY_MARKERS,
  architecture: 'gemma3',
  layers: 1,
  shape: ONE_CACHE_HEAD,
  context_tokens: 8192,
  metadata: { 'gemma3.attention.sliding_window': { type: 'u32', value: 64 } },
  norms: { post_attention_norm: 64, attn_q_norm: 32, attn_k_norm: 32, post_ffw_norm: 64 },
};

/** A model's tokenizer through node-llama-cpp, and what its file says. */
export async function llamaTokenizer(
  path: string,
): Promise<{ readonly tokenizer: ModelTokenizer; readonly facts: ModelFacts }> {
  const weights = await verifyWeights(path);
  const facts = await readModelFacts(weights.first);
  return { tokenizer: await loadLlamaTokenizer(weights, false), facts };
}

/** llama.cpp's own tokens of a model whose weights are all in memory, by none of the service's tokenizers. */
export async function loadedTokenizer(path: string): Promise<ModelTokenizer> {
  const { llama } = await llamaBackend(false);
  const model = await llama.loadModel({ modelPath: path });
  return {
    tokenize: (texts) => Promise.resolve(texts.map((text) => model.tokenize(text, false))),
    close: () => model.dispose(),
  };
}

/** A model loaded on the CPU with one thread, and what its file says. */
export async function loadOnCpu(
  path: string,
  options: {
    readonly context_tokens?: number;
    readonly queue_limit?: number;
    readonly flash_attention?: 'auto' | false;
  } = {},
): Promise<{ readonly evaluator: LlamaEvaluator; readonly facts: ModelFacts }> {
  const weights = await verifyWeights(path);
  const facts = await readModelFacts(weights.first);
  const evaluator = await loadLlamaEvaluator(weights, {
    gpu: false,
    threads: 1,
    context_tokens: options.context_tokens ?? facts.trained_context_tokens,
    queue_limit: options.queue_limit ?? 64,
    flash_attention: options.flash_attention ?? false,
  });
  return { evaluator, facts };
}
