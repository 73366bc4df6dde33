import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { JsonObject, jsonValueOf } from '../../src/json/json-value.ts';
import { writeJson } from '../../src/json/write-json.ts';
import { jsonValue } from '../fuzz/schema-values.ts';
import { propertySeed } from '../ledger/support.ts';

test('every JSON value is written as JSON.stringify writes it', () => {
  fc.assert(
    fc.property(jsonValue, (value) => {
      const json = JSON.stringify(value);
      expect(writeJson(jsonValueOf(JSON.parse(json)))).toBe(json);
      expect(writeJson(JSON.parse(json))).toBe(json);
    }),
    { numRuns: 1_000, seed: propertySeed('writeJson') },
  );
});

test('objects of both kinds may hold each other; members that are undefined are left out', () => {
  const value = {
    a: new JsonObject(
      ['2', '1', '__proto__'],
      [{ b: undefined, c: [] }, new JsonObject([], []), 'é"\n\ud800'],
    ),
    d: undefined,
    e: -0,
    f: Number.NaN,
  };
  expect(writeJson(value)).toBe('{"a":{"2":{"c":[]},"1":{},"__proto__":"é\\"\\n\\ud800"},"e":0,"f":null}');
});
