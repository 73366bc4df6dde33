import { describe, expect, test } from 'bun:test';
import { parseJson } from '../../src/http/body.ts';
import { NESTING_MAX } from '../../src/json/read-json.ts';
import { refusalCode } from './refusal-code.ts';

function parse(text: string) {
  return parseJson(Buffer.from(text));
}

describe('parseJson', () => {
  test('a byte-order mark is no part of the text', () => {
    expect(parse('\ufeff[1]')).toEqual([1]);
  });

  for (const [name, bytes] of Object.entries({
    'a lone continuation byte': [0x22, 0x80, 0x22],
    'an overlong slash': [0x22, 0xc0, 0xaf, 0x22],
    'a surrogate in UTF-8': [0x22, 0xed, 0xa0, 0x80, 0x22],
    'beyond Unicode': [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
    'UTF-16': [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00],
  })) {
    test(`bytes that are not UTF-8 are invalid_json: ${name}`, () => {
      expect(refusalCode(parseJson(new Uint8Array(bytes)))).toBe('invalid_json');
    });
  }

  test('text that is no JSON is invalid_json', () => {
    expect(refusalCode(parse('{"a":1'))).toBe('invalid_json');
    expect(refusalCode(parse(''))).toBe('invalid_json');
  });

  test.each([NESTING_MAX + 1, 1_000, 1_001, 100_000])(
    '%p levels are invalid_request, and the message has the limit',
    (levels) => {
      for (const text of ['['.repeat(levels) + ']'.repeat(levels), '{"a":'.repeat(levels)]) {
        const refusal = parse(text);
        expect(refusalCode(refusal)).toBe('invalid_request');
        expect(refusal).toMatchObject({ message: expect.stringContaining(`${NESTING_MAX} levels`) });
      }
    },
  );
});
