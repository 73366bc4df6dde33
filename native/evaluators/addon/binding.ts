import type { Gpu } from '../../gpu.ts';
import type { DecoderSize } from '../../plan-evaluator.ts';

/** An evaluator of the addon; opaque. */
export type NativeEvaluator = { readonly __nativeEvaluator: never };

/** A tokenizer of the addon; opaque. */
export type NativeTokenizer = { readonly __nativeTokenizer: never };

/** The instructions that the addon's own kernels are written for, as `instructions.hpp` names them, the best first. */
export const OWN_INSTRUCTIONS = ['amx', 'avx512', 'avx2'] as const;
export type OwnInstructions = (typeof OWN_INSTRUCTIONS)[number];
/** `none` if llama.cpp's kernels compute. */
export type KernelInstructions = OwnInstructions | 'none';

/** The folders of llama.cpp and ggml's backends, and the wanted GPU. */
export interface NativeBackends {
  readonly library_directory: string;
  /** Empty for none. */
  readonly fallback_directory: string;
  /** Empty for the CPU. */
  readonly gpu: Exclude<Gpu, 'auto' | false> | '';
}

export interface NativeMachine {
  /** ggml's name of the device, and the maker's. */
  readonly device: string;
  readonly description: string;
  /** The reason for a wanted GPU that is not used; empty otherwise. */
  readonly missing_gpu: string;
  /** The instructions of the addon's kernels. */
  readonly kernels: KernelInstructions;
  readonly uses_amx: boolean;
}

export interface NativeEvaluatorOptions extends NativeBackends {
  readonly model_path: string;
  readonly require_gpu: boolean;
  /** Threads that compute while other work needs the machine, and while none does. */
  readonly fewest_threads: number;
  readonly most_threads: number;
  /** The file with the CPU times of the machine, in the form of Linux's `/proc/stat`. */
  readonly cpu_times: string;
  readonly context_tokens: number;
  readonly queue_limit: number;
  readonly prefix_cache_bytes: number;
  readonly full_decodes: boolean;
  readonly deterministic: boolean;
  /** The wanted instructions. Opening fails if the CPU lacks them. */
  readonly kernels: KernelInstructions | 'best';
  /** −1 for none. */
  readonly fault_token: number;
  readonly read_fault_token: number;
}

/** Counters of an evaluator since its opening. */
export interface EvaluatorStats {
  readonly decodes: number;
  /** The threads of the last decode; 0 before the first. */
  readonly threads: number;
  /** The plans' tokens that went through the model, without reused prefixes. */
  readonly decoded_tokens: number;
  /** Tokens that padded small batches. */
  readonly padding_tokens: number;
  readonly reused_tokens: number;
  /** The bytes of prefixes now kept for reuse. */
  readonly kept_prefix_bytes: number;
  /** Bytes of the KV cells of all decoders. */
  readonly kv_cache_bytes: number;
  /** Decodes of at most 1, 2, 4, … tokens before padding, and more than half of that; the last of all above. */
  readonly batches: Float64Array;
  readonly batched_tokens: number;
  readonly waiting_plans: number;
}

/** The facts of a loaded model. */
export interface LoadedFacts {
  /** As in `NativeMachine`. */
  readonly device: string;
  readonly missing_gpu: string;
  readonly context_tokens: number;
  /** As `PlanEvaluator.decoder_tokens`. */
  readonly decoder_tokens: number;
}

/** The events of an evaluator: `loaded` once, one for each accepted plan, `closed` last. */
export type EvaluatorEvent =
  | ({ readonly kind: 'loaded'; readonly error?: undefined } & LoadedFacts)
  | { readonly kind: 'loaded'; readonly error: string; readonly missing_gpu: string }
  | { readonly kind: 'answered'; readonly id: number; readonly logits: Float32Array }
  | { readonly kind: 'failed'; readonly id: number; readonly error: string }
  | { readonly kind: 'cancelled'; readonly id: number }
  | { readonly kind: 'closed' };

/** The events of a tokenizer: `loaded` once, one for each accepted batch of texts, `closed` last. */
export type TokenizerEvent =
  | {
      readonly kind: 'loaded';
      readonly error?: undefined;
      /** GGUF's `tokenizer.ggml.model` and `tokenizer.ggml.pre`; empty if the file has none. */
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
      /** The number of tokens of each text. */
      readonly lengths: Int32Array;
    }
  | { readonly kind: 'tokenized'; readonly id: number; readonly error: string }
  | { readonly kind: 'closed' };

/** The exports of the addon (`src/addon.cpp`). */
export interface AddonBinding {
  inspect(backends: NativeBackends): NativeMachine;
  /** Throws when the evaluator's thread cannot be started. */
  open(options: NativeEvaluatorOptions, onEvent: (event: EvaluatorEvent) => void): NativeEvaluator;
  /** Throws when the plan is malformed. */
  decoderOf(evaluator: NativeEvaluator, packed: Int32Array): DecoderSize;
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

const FUNCTIONS = [
  'inspect',
  'open',
  'decoderOf',
  'submit',
  'cancel',
  'stats',
  'openTokenizer',
  'tokenizeAll',
  'close',
];

export function isAddonBinding(value: unknown): value is AddonBinding {
  if (typeof value !== 'object' || value === null) return false;
  const functions = new Map(Object.entries(value));
  return FUNCTIONS.every((name) => typeof functions.get(name) === 'function');
}
