import type { AddonStats } from './index.ts';

/** An engine of the addon; opaque. */
export type NativeEngine = { readonly __nativeEngine: never };

/** A tokenizer of the addon; opaque. */
export type NativeTokenizer = { readonly __nativeTokenizer: never };

/** Where llama.cpp and ggml's backends are, and which of them is wanted. */
export interface NativeBackends {
  readonly library_directory: string;
  /** Empty where there is none. */
  readonly fallback_directory: string;
  /** Empty for the CPU. */
  readonly gpu: 'cuda' | 'metal' | 'vulkan' | '';
}

export interface NativeMachine {
  /** ggml's name of the device, and the maker's. */
  readonly device: string;
  readonly description: string;
  /** Why the GPU that was wanted is not used; empty when it is, or when none was wanted. */
  readonly missing_gpu: string;
  readonly has_own_kernels: boolean;
  readonly uses_amx: boolean;
}

export interface NativeOptions extends NativeBackends {
  readonly model_path: string;
  readonly require_gpu: boolean;
  readonly threads: number;
  readonly context_tokens: number;
  readonly queue_limit: number;
  readonly prefix_cache_bytes: number;
  readonly full_decodes: boolean;
  readonly deterministic: boolean;
  readonly own_kernels: boolean;
  /** −1 for none. */
  readonly fault_token: number;
  readonly read_fault_token: number;
}

/** What an engine tells: `loaded` once, one event for each accepted plan, `closed` last. */
export type EngineEvent =
  | {
      readonly kind: 'loaded';
      readonly error?: undefined;
      readonly device: string;
      /** As in `NativeMachine`. */
      readonly missing_gpu: string;
      readonly context_tokens: number;
    }
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
      /** Of all texts, one after the other. */
      readonly tokens: Int32Array;
      /** How many tokens each text has. */
      readonly lengths: Int32Array;
    }
  | { readonly kind: 'tokenized'; readonly id: number; readonly error: string }
  | { readonly kind: 'closed' };

/** What the addon exports (`src/addon.cpp`). */
export interface AddonBinding {
  inspect(backends: NativeBackends): NativeMachine;
  /** Throws when the engine's thread cannot be started. */
  open(options: NativeOptions, onEvent: (event: EngineEvent) => void): NativeEngine;
  /** Throws when the plan is malformed. */
  submit(
    engine: NativeEngine,
    id: number,
    scope: string,
    packed: Int32Array,
  ): 'accepted' | 'overloaded' | 'closed';
  cancel(engine: NativeEngine, id: number): void;
  stats(engine: NativeEngine): AddonStats;
  /** Throws when the tokenizer's thread cannot be started. */
  openTokenizer(
    options: NativeBackends & { readonly model_path: string },
    onEvent: (event: TokenizerEvent) => void,
  ): NativeTokenizer;
  /** Throws when the tokenizer has been closed. */
  tokenize(tokenizer: NativeTokenizer, text: string): Int32Array;
  /** Throws when the tokenizer has been closed. */
  tokenizeAll(tokenizer: NativeTokenizer, id: number, texts: readonly string[]): void;
  close(opened: NativeEngine | NativeTokenizer): void;
}

const FUNCTIONS = [
  'inspect',
  'open',
  'submit',
  'cancel',
  'stats',
  'openTokenizer',
  'tokenize',
  'tokenizeAll',
  'close',
];

export function isAddonBinding(value: unknown): value is AddonBinding {
  if (typeof value !== 'object' || value === null) return false;
  const functions = new Map(Object.entries(value));
  return FUNCTIONS.every((name) => typeof functions.get(name) === 'function');
}
