import { type HashKey, halfSipHash } from '../hashing/half-siphash.ts';
import { isJsonArray, isJsonObject, type JsonValue } from '../json/json-value.ts';

/** Hashed words are numbers below this; two words collide by chance, once in that many. */
export const BUCKETS = 2 ** 18;

/**
 * The most characters of a record that are read, which holds the event loop for at most a few milliseconds.
 */
const CHARACTERS_MAX = 65_536;

/** Letters and digits; an apostrophe inside a word belongs to it. */
const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*/gu;

/**
 * Returns the distinct words of a record and the pairs of adjacent words, hashed with the key to numbers
 * below `BUCKETS`, ascending. Case does not count. Objects and arrays contribute the words of their texts and
 * numbers, not of their fields' names.
 */
export function recordWords(state: JsonValue, key: HashKey): Int32Array {
  const found: number[] = [];
  const take = (text: string) => found.push(halfSipHash(text, key) & (BUCKETS - 1));
  for (const text of boundedTexts(state)) {
    let before: string | null = null;
    for (const [match] of text.matchAll(WORD)) {
      const word = match.toLowerCase();
      take(word);
      // No word contains a space, so that a pair is never hashed as a word.
      if (before !== null) take(`${before} ${word}`);
      before = word;
    }
  }
  const sorted = Int32Array.from(found).sort();
  return sorted.filter((bucket, at) => at === 0 || sorted[at - 1] !== bucket);
}

/** Yields the texts of a record in order, together at most `CHARACTERS_MAX` characters. */
function* boundedTexts(state: JsonValue): Generator<string> {
  let left = CHARACTERS_MAX;
  for (const text of textsOf(state)) {
    if (left <= 0) return;
    // A truncated word would be another word.
    yield text.length <= left ? text : text.slice(0, text.lastIndexOf(' ', left) + 1);
    left -= text.length + 1;
  }
}

/**
 * Yields the texts of a record. It uses a list instead of the stack, because clients choose the depth of a
 * record.
 */
function* textsOf(state: JsonValue): Generator<string> {
  const waiting: JsonValue[] = [state];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value === 'string') yield value;
    else if (typeof value === 'number') yield String(value);
    else if (isJsonArray(value)) for (const item of value.toReversed()) waiting.push(item);
    else if (isJsonObject(value)) for (const item of value.values.toReversed()) waiting.push(item);
  }
}
