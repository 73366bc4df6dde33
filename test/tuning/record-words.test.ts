import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { JsonObject, type JsonValue } from '../../src/json/json-value.ts';
import { BUCKETS, recordWords } from '../../src/tuning/record-words.ts';

const KEY = [5, 9] as const;
const wordsOf = (state: JsonValue) => recordWords(state, KEY);

test('words and pairs of neighbours are distinct numbers below the number of buckets, ascending', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const words = [...wordsOf(text)];
      expect(words).toEqual([...new Set(words)].sort((one, other) => one - other));
      for (const word of words) expect(word).toBeWithin(0, BUCKETS);
    }),
  );
  // Two words and their pair; a word that comes again is no other word.
  expect(wordsOf('refund please')).toHaveLength(3);
  expect(wordsOf('no no no')).toHaveLength(2);
});

test('case, punctuation and the form of the record do not count, and the names of fields are no words', () => {
  const plain = wordsOf('Refund, PLEASE!');
  expect(wordsOf('refund please')).toEqual(plain);
  expect(wordsOf(new JsonObject(['subject'], ['refund please']))).toEqual(plain);
  expect(wordsOf([['refund please']])).toEqual(plain);
});

test('another key gives other numbers', () => {
  expect(recordWords('refund please', [6, 9])).not.toEqual(wordsOf('refund please'));
});

test('a record that is too deep or too long for the stack has words all the same, of its beginning', () => {
  let deep: JsonValue = 'refund';
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
  expect(wordsOf(deep)).toEqual(wordsOf('refund'));
  expect(wordsOf(new Array<JsonValue>(300_000).fill('refund'))).toEqual(wordsOf('refund'));
  expect(wordsOf(`${'a '.repeat(40_000)}refund`)).toEqual(wordsOf('a a'));
});
