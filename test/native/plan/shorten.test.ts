import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Tokenizer } from '../../../native/plan/profile.ts';
import { cutMiddle, recordTokens } from '../../../native/plan/shorten.ts';
import { WORDS } from './words.ts';

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

test.each([
  ['words', 'word '.repeat(200_000)],
  ['white space', ' '.repeat(1_000_000)],
  ['one letter', 'a'.repeat(1_000_000)],
])('of a megabyte of %s only a window at each end is tokenized, once', (_, text) => {
  const lengths: number[] = [];
  const counting: Tokenizer = {
    tokenize(part) {
      lengths.push(part.length);
      return WORDS.tokenize(part);
    },
  };
  recordTokens(text, counting, 1000);
  expect(lengths.length).toBe(2);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(10_000);
});

test('a text of far fewer tokens than fit loses what stands between the windows, and nothing else', () => {
  const spaces = ' '.repeat(1000);
  const fits = `first ${spaces} middle ${spaces} last`;
  expect(recordTokens(fits, WORDS, 200)).toEqual(WORDS.tokenize(fits));
  const long = `first ${spaces.repeat(50)} middle ${spaces.repeat(50)} last`;
  const tokens = recordTokens(long, WORDS, 200);
  expect(tokens.slice(0, 1)).toEqual([...WORDS.tokenize('first')]);
  expect(tokens.slice(-1)).toEqual([...WORDS.tokenize('last')]);
  expect(tokens).not.toContain(WORDS.tokenize('middle')[0] ?? -1);
});

test('a window never cuts a character of two code units', () => {
  const parts: string[] = [];
  const hearing: Tokenizer = {
    tokenize(part) {
      parts.push(part);
      return [];
    },
  };
  for (const shift of ['', 'a']) recordTokens(shift + '\u{1f600}'.repeat(10_000), hearing, 100);
  expect(parts.length).toBe(4);
  for (const part of parts) expect(part.isWellFormed()).toBe(true);
});
