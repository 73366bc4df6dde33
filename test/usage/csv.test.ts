import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { csvLine } from '../../src/usage/csv.ts';
import { propertySeed } from '../ledger/support.ts';

const seed = propertySeed('csv');

/** Reads CSV text as a spreadsheet with that separator does. */
function cellsOf(text: string, separator: string): string[][] {
  const rows: string[][] = [[]];
  let cell = '';
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (character === '"' && cell === '') quoted = true;
    else if (character === separator || character === '\n') {
      rows.at(-1)?.push(cell.replace(/\r$/, ''));
      cell = '';
      if (character === '\n') rows.push([]);
    } else cell += character;
  }
  return rows.slice(0, -1);
}

/** Quotes, spaces, and characters without a width of those below. */
const STRIPPED = /^(?:["\s\p{Cf}]|\u3164)+/u;

const tricky = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '=',
      '+',
      '-',
      '@',
      '\t',
      '\r',
      '\n',
      '"',
      "'",
      ',',
      ';',
      '|',
      ' ',
      '＝',
      '＋',
      '－',
      '＠',
      '\u200b',
      '\u2060',
      '\ufeff',
      '\u00ad',
      '\u3164',
      '\u{e0020}',
    ),
    fc.constantFrom('a', '1', 'é'),
  ),
  maxLength: 12,
});

test('a spreadsheet with any separator finds no cell that it would run as a formula', () => {
  fc.assert(
    fc.property(fc.array(tricky, { minLength: 1, maxLength: 4 }), (cells) => {
      for (const separator of [',', ';', '\t', '|']) {
        for (const cell of cellsOf(csvLine(cells), separator).flat()) {
          expect(cell.replace(STRIPPED, '')).not.toMatch(/^[=+\-@＝＋－＠]/);
          if (separator === ',') expect(cell).not.toMatch(/^[\t\r\n]/);
        }
      }
    }),
    { seed, numRuns: 3_000 },
  );
});

test('text that is no formula comes back as it was, whatever characters it has', () => {
  const plain = tricky.filter(
    (text) => !/[=+\-@＝＋－＠]/.test(text) && !/^[\t\r\n]/.test(text) && !text.endsWith('\r'),
  );
  fc.assert(
    fc.property(fc.array(plain, { minLength: 2, maxLength: 4 }), (cells) => {
      expect(cellsOf(csvLine(cells), ',')).toEqual([cells]);
    }),
    { seed, numRuns: 1_000 },
  );
});

test('numbers are written as they are, below zero too', () => {
  expect(csvLine([1, -2.5, 'a', '=1'])).toBe("1,-2.5,a,'=1\r\n");
});
