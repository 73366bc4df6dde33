import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Refusal } from '../../src/errors.ts';
import { parseJson } from '../../src/http/body.ts';
import { jsonValue } from '../fuzz/schema-values.ts';
import { propertySeed } from '../ledger/support.ts';

function parse(text: string) {
  return parseJson(Buffer.from(text));
}

function codeOf(value: unknown): string | null {
  return value instanceof Refusal ? value.code : null;
}

describe('parseJson', () => {
  test('gives every JSON value as it was written', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const json = JSON.stringify(value);
        // Integers that a double would change are the next test's.
        fc.pre(!/\d{16}/.test(json));
        expect(parse(json)).toEqual(JSON.parse(json));
      }),
      { numRuns: 1_000, seed: propertySeed('parseJson') },
    );
  });

  test('keeps the digits of integers that a double would change, inside of fields', () => {
    expect(parse('{"a":[9007199254740993,-12345678901234567890],"b":{"c":9007199254740991}}')).toEqual({
      a: ['9007199254740993', '-12345678901234567890'],
      b: { c: 9007199254740991 },
    });
  });

  test('leaves a field of the body a number, whatever its size', () => {
    expect(parse('{"state":12345678901234567890,"__proto__":12345678901234567890}')).toEqual(
      JSON.parse('{"state":12345678901234567890,"__proto__":12345678901234567890}'),
    );
  });

  test('leaves fractions and exponents to the double', () => {
    expect(parse('{"a":[0.12345678901234567890,1e20,123456789012345678e1]}')).toEqual({
      a: [0.12345678901234568, 1e20, 1.2345678901234568e18],
    });
  });

  test('a byte-order mark is no part of the text', () => {
    expect(parse('\ufeff{"a":1}')).toEqual({ a: 1 });
  });

  for (const [name, bytes] of Object.entries({
    'a lone continuation byte': [0x22, 0x80, 0x22],
    'an overlong slash': [0x22, 0xc0, 0xaf, 0x22],
    'a surrogate in UTF-8': [0x22, 0xed, 0xa0, 0x80, 0x22],
    'beyond Unicode': [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
    'UTF-16': [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00],
  })) {
    test(`bytes that are not UTF-8 are invalid_json: ${name}`, () => {
      expect(codeOf(parseJson(new Uint8Array(bytes)))).toBe('invalid_json');
    });
  }

  test('1,000 levels are parsed, one more is invalid_json, and brackets in strings are no levels', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(codeOf(parse(nested(1_000)))).toBeNull();
    expect(codeOf(parse(nested(1_001)))).toBe('invalid_json');
    expect(parse(JSON.stringify('[{"\\'.repeat(2_000)))).toBe('[{"\\'.repeat(2_000));
  });
});
