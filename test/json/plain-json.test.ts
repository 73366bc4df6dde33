import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { jsonValueOf } from '../../src/json/json-value.ts';
import { plainJson } from '../../src/json/plain-json.ts';
import { readJson } from '../../src/json/read-json.ts';
import { propertySeed } from '../ledger/support.ts';

test('a value is as it was before it was read', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      expect(plainJson(jsonValueOf(value))).toEqual(value);
    }),
    { seed: propertySeed('plain json') },
  );
  const text = '{"__proto__":{"toString":[null]},"10":1,"9":2}';
  expect(JSON.stringify(plainJson(readJson(text)))).toBe(JSON.stringify(JSON.parse(text)));
});

test('a value with more names than a hash without a seed may have to find is none, wherever they are', () => {
  const ofNames = (count: number) => {
    const objects = Array.from({ length: count - 2 }, (_, index) => `[{"name ${index}":0}]`);
    return plainJson(readJson(`{"a":{"b":[${objects.join()}]}}`));
  };
  expect(ofNames(256)).toMatchObject({ a: { b: expect.any(Array) } });
  expect(ofNames(257)).toBeUndefined();
});
