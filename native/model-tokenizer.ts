import type { Tokenizer } from './plan/profile.ts';

/**
 * A model's own tokenizer. Of the model's file only the vocabulary is in memory: it outlives engines, which have the
 * weights.
 */
export interface ModelTokenizer extends Tokenizer {
  /** Frees the vocabulary; what is being tokenized is rejected with `EngineFailed`. */
  close(): Promise<void>;
}
