import type { Tokenizer } from './plan/profile.ts';

/** A model's own tokenizer. It has only the vocabulary in memory, and outlives engines, which have the weights. */
export interface ModelTokenizer extends Tokenizer {
  /** Frees the vocabulary. Running calls reject with `EngineFailed`. */
  close(): Promise<void>;
}
