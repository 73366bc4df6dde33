import type { Tokenizer } from './profile.ts';

/** Characters that a window starts with, for each token wanted: more than English text needs. */
const WINDOW_CHARACTERS_PER_TOKEN = 8;
/** Tokens at a window's cut edge may differ from those of the whole text; this many are never used. */
const WINDOW_EDGE_TOKENS = 64;

/** `tokens` cut to `room`: the first half of the room and the last half stay. */
export function cutMiddle(tokens: readonly number[], room: number): readonly number[] {
  if (tokens.length <= room) return tokens;
  const head = Math.floor(room / 2);
  return [...tokens.slice(0, head), ...tokens.slice(tokens.length - (room - head))];
}

/**
 * The tokens of a record of any length, without its middle where it is longer than `most_tokens`: the caller cuts to
 * its own room, at most that. A text far longer than fits is tokenized at its ends only, so that one request of a
 * megabyte does not hold up the others for a second.
 */
export function recordTokens(text: string, tokenizer: Tokenizer, most_tokens: number): readonly number[] {
  const wanted = most_tokens + WINDOW_EDGE_TOKENS;
  for (let characters = wanted * WINDOW_CHARACTERS_PER_TOKEN; 2 * characters < text.length; characters *= 2) {
    const head = tokenizer.tokenize(text.slice(0, characters));
    const tail = tokenizer.tokenize(text.slice(-characters));
    if (head.length >= wanted && tail.length >= wanted) {
      return [...head.slice(0, most_tokens), ...tail.slice(tail.length - most_tokens)];
    }
  }
  return tokenizer.tokenize(text);
}
