import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { textLines } from '../../src/json/text-lines.ts';
import { propertySeed } from '../ledger/support.ts';

const piece = fc.string({ unit: fc.constantFrom('a', 'ß', '\u2028', '\r', '\n'), maxLength: 6 });

test('lines are what stands between line feeds, however the text arrives in pieces', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece), fc.integer({ min: 1, max: 5 }), async (texts, size) => {
      const bytes = new TextEncoder().encode(texts.join(''));
      const lines = textLines(cut(bytes, size));
      const read: string[] = [];
      let next = await lines.next();
      for (; next.done !== true; next = await lines.next()) read.push(next.value);
      expect([...read, next.value]).toEqual(texts.join('').split('\n'));
    }),
    { seed: propertySeed('lines of a text') },
  );
});

/** Cuts bytes into pieces of one size, also within a character. */
function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
