import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { halfSipHash } from '../../src/hashing/half-siphash.ts';
import { StringTable } from '../../src/hashing/string-table.ts';
import { collidingTexts } from '../support/colliding-texts.ts';

test('equal texts have one number, different texts have different ones, in the order in which they came', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 3, unit: 'binary' }), { maxLength: 300 }), (texts) => {
      const table = new StringTable();
      const distinct = [...new Set(texts)];
      expect(texts.map((text) => table.intern(text))).toEqual(texts.map((text) => distinct.indexOf(text)));
      expect(table.texts).toEqual(distinct);
      expect(distinct.every((text) => table.has(text))).toBe(true);
      expect(table.has('a text of none of them')).toBe(false);
    }),
  );
});

test('the hash depends on every code unit, on the length and on both halves of the key', () => {
  const texts = [
    '',
    '\0',
    '\0\0',
    '\0\0\0',
    'a',
    'b',
    'ab',
    'ba',
    'abc',
    'abd',
    'a\u0100',
    '\u0100a',
    'a'.repeat(7),
  ];
  const hashes = [
    ...texts.map((text) => halfSipHash(text, [1, 2])),
    ...texts.map((text) => halfSipHash(text, [1, 3])),
    ...texts.map((text) => halfSipHash(text, [2, 2])),
  ];
  expect(new Set(hashes).size).toBe(hashes.length);
  expect(hashes.every((hash) => Number.isInteger(hash) && hash === (hash | 0))).toBe(true);
});

test('hashes of texts that were chosen for JavaScriptCore fall as chance has them', () => {
  const hashes = collidingTexts(40_000).map((text) => halfSipHash(text, [0x12345678, -7]));
  // By chance 0.2 pairs of 40,000 share one of 2^32 hashes.
  expect(new Set(hashes).size).toBeGreaterThan(39_990);
  const buckets = new Int32Array(4_096);
  for (const hash of hashes) buckets[hash & 4_095] = (buckets[hash & 4_095] ?? 0) + 1;
  expect(Math.max(...buckets)).toBeLessThan(40);
});
