import type { BatchTokenizer, Tokenizer } from '../../../native/plan/profile.ts';
import type { Vocabulary } from '../../../native/plan/vocabulary.ts';

/** A batch tokenizer that does one text after the other. */
export function batchOf(tokenize: Tokenizer['tokenize']): BatchTokenizer {
  return { tokenizeAll: (texts) => Promise.resolve(texts.map(tokenize)) };
}

function tokenize(text: string): readonly number[] {
  return Array.from(text.matchAll(/\s+|\S+/g), ([word]) => Number(Bun.hash.crc32(word)));
}

/** Words and the spaces between them, each a token: enough of a tokenizer for arithmetic on tokens. */
export const WORDS: Tokenizer = { tokenize, ...batchOf(tokenize) };

/** The vocabulary beside a tokenizer that is not a model's: it has no control tokens. */
export const NO_WORDS: Vocabulary = {
  texts: [],
  special: new Set(),
  bos: undefined,
  eos: undefined,
  begins_with_bos: false,
};
