import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Tokenizer } from '../../../native/plan/profile.ts';
import { cutMiddle, recordTokens } from '../../../native/plan/shorten.ts';

/** Words and the spaces between them, each a token: enough of a tokenizer for arithmetic on tokens. */
const WORDS: Tokenizer = {
  tokenize: (text) => Array.from(text.matchAll(/\s+|\S+/g), ([word]) => Number(Bun.hash.crc32(word))),
};

test('what fits is left alone, and what does not keeps the first half and the last half', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 50 }), fc.nat({ max: 60 }), (tokens, room) => {
      const cut = cutMiddle(tokens, room);
      expect(cut.length).toBe(Math.min(tokens.length, room));
      if (tokens.length <= room) expect(cut).toEqual(tokens);
      const head = Math.floor(room / 2);
      if (tokens.length > room) {
        expect(cut.slice(0, head)).toEqual(tokens.slice(0, head));
        expect(cut.slice(head)).toEqual(tokens.slice(tokens.length - (room - head)));
      }
    }),
  );
});

test('a long record tokenized at its ends is cut to the same tokens as the whole', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 400, maxLength: 4000 }),
      fc.integer({ min: 1, max: 100 }),
      fc.nat({ max: 100 }),
      (words, most_tokens, less) => {
        const text = words.join(' ');
        const room = Math.max(0, most_tokens - less);
        expect(cutMiddle(recordTokens(text, WORDS, most_tokens), room)).toEqual(
          cutMiddle(WORDS.tokenize(text), room),
        );
      },
    ),
    { numRuns: 100 },
  );
});

test('a megabyte is not tokenized as a whole', () => {
  let characters = 0;
  const counting: Tokenizer = {
    tokenize(text) {
      characters += text.length;
      return WORDS.tokenize(text);
    },
  };
  recordTokens('word '.repeat(200_000), counting, 1000);
  expect(characters).toBeLessThan(100_000);
});
