import type { Tokenizer } from '../../../native/plan/profile.ts';
import type { Vocabulary } from '../../../native/plan/vocabulary.ts';

/** A tokenizer that does one text after the other. */
export function tokenizerOf(tokensOf: (text: string) => readonly number[]): Tokenizer {
  return { tokenize: (texts) => Promise.resolve(texts.map(tokensOf)) };
}

/** Words and the spaces between them, each a token: enough of a tokenizer for arithmetic on tokens. */
export function wordTokens(text: string): readonly number[] {
  return Array.from(text.matchAll(/\s+|\S+/g), ([word]) => Number(Bun.hash.crc32(word)));
}

/** The vocabulary beside a tokenizer that is not a model's: it has no control tokens. */
export const NO_WORDS: Vocabulary = {
  texts: [],
  special: new Set(),
  bos: undefined,
  eos: undefined,
  begins_with_bos: false,
};
