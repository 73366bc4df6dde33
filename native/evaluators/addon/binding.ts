import type { Gpu } from '../../gpu.ts';

/** An evaluator of the addon; opaque. */
export type NativeEvaluator = { readonly __nativeEvaluator: never };

/** A tokenizer of the addon; opaque. */
export type NativeTokenizer = { readonly __nativeTokenizer: never };

/** The instructions that the addon's own kernels are written for, as `instructions.hpp` names them. */
export type KernelInstructions = 'avx512' | 'avx2' | 'none';

/** Where llama.cpp and ggml's backends are, and which of them is wanted. */
export interface NativeBackends {
  readonly library_directory: string;
  /** Empty where there is none. */
  readonly fallback_directory: string;
  /** Empty for the CPU. */
  readonly gpu: Exclude<Gpu, 'auto' | false> | '';
}

export interface NativeMachine {
  /** ggml's name of the device, and the maker's. */
  readonly device: string;
  readonly description: string;
  /** Why the GPU that was wanted is not used; empty when it is, or when none was wanted. */
  readonly missing_gpu: string;
  /** What the addon's kernels compute with here. */
  readonly kernels: KernelInstructions;
  readonly uses_amx: boolean;
}

export interface NativeEvaluatorOptions extends NativeBackends {
  readonly model_path: string;
  readonly require_gpu: boolean;
  readonly threads: number;
  readonly context_tokens: number;
  readonly queue_limit: number;
  readonly prefix_cache_bytes: number;
  readonly full_decodes: boolean;
  readonly deterministic: boolean;
  /** An error where the CPU lacks them. */
  readonly kernels: KernelInstructions | 'best';
  /** −1 for none. */
  readonly fault_token: number;
  readonly read_fault_token: number;
}

/** What an evaluator has done since it was opened. */
export interface EvaluatorStats {
  readonly decodes: number;
  /** Tokens of plans that went through the model; a prefix that is reused is not among them. */
  readonly decoded_tokens: number;
  /** Tokens that only filled small batches up. */
  readonly filler_tokens: number;
  readonly reused_tokens: number;
  readonly failed_decodes: number;
  /** Bytes of prefixes that are kept for reuse now. */
  readonly kept_prefix_bytes: number;
  /** Bytes of the KV cells of all decoders. */
  readonly kv_cache_bytes: number;
  /** Decodes of at most 1, 2, 4, … tokens before padding, and more than half of that; the last of all above. */
  readonly batches: Float64Array;
  readonly batched_tokens: number;
  readonly waiting_plans: number;
}

/** What an evaluator has loaded. */
export interface LoadedFacts {
  /** As in `NativeMachine`. */
  readonly device: string;
  readonly missing_gpu: string;
  readonly context_tokens: number;
  /** A plan of at most so many cells is computed in the decoder of small plans. */
  readonly small_plan_cells: number;
  /** A prefix, and the branches that are computed at once, each take a multiple of so many cells. */
  readonly cell_multiple: number;
  /** The cells of the branches that are computed at once, unless one branch alone is larger. */
  readonly wave_cells: number;
  /** As `PlanEvaluator.decoder_tokens`. */
  readonly decoder_tokens: number;
}

/** What an evaluator tells: `loaded` once, one event for each accepted plan, `closed` last. */
export type EvaluatorEvent =
  | ({ readonly kind: 'loaded'; readonly error?: undefined } & LoadedFacts)
  | { readonly kind: 'loaded'; readonly error: string; readonly missing_gpu: string }
  | { readonly kind: 'answered'; readonly id: number; readonly logits: Float32Array }
  | { readonly kind: 'failed'; readonly id: number; readonly error: string }
  | { readonly kind: 'cancelled'; readonly id: number }
  | { readonly kind: 'closed' };

/** What a tokenizer tells: `loaded` once, one event for each accepted batch of texts, `closed` last. */
export type TokenizerEvent =
  | {
      readonly kind: 'loaded';
      readonly error?: undefined;
      /** GGUF's `tokenizer.ggml.model` and `tokenizer.ggml.pre`; empty where the file does not say. */
      readonly tokenizer_model: string;
      readonly pre_tokenizer: string;
    }
  | { readonly kind: 'loaded'; readonly error: string }
  | {
      readonly kind: 'tokenized';
      readonly id: number;
      readonly error?: undefined;
      /** The tokens of all texts, one after the other. */
      readonly tokens: Int32Array;
      /** How many tokens each text has. */
      readonly lengths: Int32Array;
    }
  | { readonly kind: 'tokenized'; readonly id: number; readonly error: string }
  | { readonly kind: 'closed' };

/** What the addon exports (`src/addon.cpp`). */
export interface AddonBinding {
  inspect(backends: NativeBackends): NativeMachine;
  /** Throws when the evaluator's thread cannot be started. */
  open(options: NativeEvaluatorOptions, onEvent: (event: EvaluatorEvent) => void): NativeEvaluator;
  /** Throws when the plan is malformed. */
  submit(
    evaluator: NativeEvaluator,
    id: number,
    scope: string,
    packed: Int32Array,
  ): 'accepted' | 'overloaded' | 'closed';
  cancel(evaluator: NativeEvaluator, id: number): void;
  stats(evaluator: NativeEvaluator): EvaluatorStats;
  /** Throws when the tokenizer's thread cannot be started. */
  openTokenizer(
    options: NativeBackends & { readonly model_path: string },
    onEvent: (event: TokenizerEvent) => void,
  ): NativeTokenizer;
  /** Throws when the tokenizer has been closed. */
  tokenizeAll(tokenizer: NativeTokenizer, id: number, texts: readonly string[]): void;
  close(opened: NativeEvaluator | NativeTokenizer): void;
}

const FUNCTIONS = ['inspect', 'open', 'submit', 'cancel', 'stats', 'openTokenizer', 'tokenizeAll', 'close'];

export function isAddonBinding(value: unknown): value is AddonBinding {
  if (typeof value !== 'object' || value === null) return false;
  const functions = new Map(Object.entries(value));
  return FUNCTIONS.every((name) => typeof functions.get(name) === 'function');
}
