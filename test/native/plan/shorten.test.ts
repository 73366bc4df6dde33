import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { cutMiddle, recordWindows } from '../../../native/plan/shorten.ts';
import { wordTokens } from './words.ts';

/** The tokens of what is tokenized of a record. */
function recordTokens(text: string, most_tokens: number): readonly number[] {
  return recordWindows(text, most_tokens).flatMap(wordTokens);
}

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
        expect(cutMiddle(recordTokens(text, most_tokens), room)).toEqual(cutMiddle(wordTokens(text), room));
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
  const windows = recordWindows(text, 1000);
  expect(windows.length).toBe(2);
  expect(windows.join('').length).toBeLessThan(10_000);
});

test('a text of far fewer tokens than fit loses what stands between the windows, and nothing else', () => {
  const spaces = ' '.repeat(1000);
  const fits = `first ${spaces} middle ${spaces} last`;
  expect(recordTokens(fits, 200)).toEqual(wordTokens(fits));
  const long = `first ${spaces.repeat(50)} middle ${spaces.repeat(50)} last`;
  const tokens = recordTokens(long, 200);
  expect(tokens.slice(0, 1)).toEqual([...wordTokens('first')]);
  expect(tokens.slice(-1)).toEqual([...wordTokens('last')]);
  expect(tokens).not.toContain(wordTokens('middle')[0] ?? -1);
});

test('a window never cuts a character of two code units', () => {
  const parts = ['', 'a'].flatMap((shift) => recordWindows(shift + '\u{1f600}'.repeat(10_000), 100));
  expect(parts.length).toBe(4);
  for (const part of parts) expect(part.isWellFormed()).toBe(true);
});
