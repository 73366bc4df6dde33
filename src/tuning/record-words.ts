import { type HashKey, halfSipHash } from '../hashing/half-siphash.ts';
import { isJsonArray, isJsonObject, type JsonValue } from '../json/json-value.ts';

/** Hashed words are numbers below this; two words share one by chance, once in so many. */
export const BUCKETS = 2 ** 18;

/** No more of a record's text is looked at: it bounds the time that the event loop is held to a few milliseconds. */
const CHARACTERS_MAX = 65_536;

/** Letters and digits; an apostrophe inside a word belongs to it. */
const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*/gu;

/**
 * The distinct words of a record and the pairs of neighbouring words, hashed with the key to numbers below `BUCKETS`,
 * ascending. Case does not count. Of a record of objects and arrays these are the words of its texts and numbers, not
 * of its fields' names.
 */
export function recordWords(state: JsonValue, key: HashKey): Int32Array {
  const found: number[] = [];
  const take = (text: string) => found.push(halfSipHash(text, key) & (BUCKETS - 1));
  for (const text of boundedTexts(state)) {
    let before: string | null = null;
    for (const [match] of text.matchAll(WORD)) {
      const word = match.toLowerCase();
      take(word);
      // No word has a space in it, so that a pair is never hashed as a word.
      if (before !== null) take(`${before} ${word}`);
      before = word;
    }
  }
  const sorted = Int32Array.from(found).sort();
  return sorted.filter((bucket, at) => at === 0 || sorted[at - 1] !== bucket);
}

/** The texts of a record in order, together at most `CHARACTERS_MAX` characters. */
function* boundedTexts(state: JsonValue): Generator<string> {
  let left = CHARACTERS_MAX;
  for (const text of textsOf(state)) {
    if (left <= 0) return;
    // A word that is cut would be another word.
    yield text.length <= left ? text : text.slice(0, text.lastIndexOf(' ', left) + 1);
    left -= text.length + 1;
  }
}

/** A client chooses how deep a record is, so the way is a list and not the stack. */
function* textsOf(state: JsonValue): Generator<string> {
  const waiting: JsonValue[] = [state];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value === 'string') yield value;
    else if (typeof value === 'number') yield String(value);
    else if (isJsonArray(value)) for (const item of value.toReversed()) waiting.push(item);
    else if (isJsonObject(value)) for (const item of value.values.toReversed()) waiting.push(item);
  }
}
