import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { JsonObject, type JsonValue } from '../../src/json/json-value.ts';
import { JsonError, NESTING_MAX, readJson } from '../../src/json/read-json.ts';
import { writeJson } from '../../src/json/write-json.ts';
import { jsonValue } from '../fuzz/schema-values.ts';
import { propertySeed } from '../ledger/support.ts';

const REFUSED = Symbol('refused');

function nativelyRead(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return REFUSED;
  }
}

const REQUEST = { keeps_outer_numbers: true };

/** Returns the value of `readJson` in the form of `JSON.parse`. */
function plainlyRead(text: string): unknown {
  try {
    return plain(readJson(text, REQUEST));
  } catch (error) {
    if (error instanceof JsonError) return REFUSED;
    throw error;
  }
}

function plain(value: JsonValue): unknown {
  if (value instanceof JsonObject) {
    // Not by assignment, which would take `__proto__` for more than a name.
    return Object.fromEntries(value.names.map((name, index) => [name, plain(value.values[index] ?? null)]));
  }
  return Array.isArray(value) ? value.map(plain) : value;
}

/** Text near the grammar's edges. */
const pieces = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...[
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '"',
          '\\',
          ' ',
          '\n',
          '\t',
          '\r',
          '\f',
          '\v',
          '\u00a0',
          '\u2028',
          '\ufeff',
        ],
        ...[
          'true',
          'false',
          'null',
          'NaN',
          'Infinity',
          'undefined',
          '-',
          '+',
          '.',
          'e',
          'E',
          '0',
          '00',
          '1',
          '-0',
        ],
        ...[
          '1.5',
          '1.',
          '.5',
          '1e5',
          '1e',
          '1E+',
          '1e-7',
          '1e999',
          '-1e999',
          '0x1',
          '1_0',
          "'",
          '//',
          '/**/',
        ],
        ...[
          '""',
          '"a"',
          '"a":1',
          '"\\u0041"',
          '"\\ud800"',
          '"\\x"',
          '"\\u12"',
          '"\\uD83D\\uDE00"',
          '"\\/"',
          '"\u0001"',
        ],
        ...[
          '"\u007f"',
          '"\u2028"',
          '{"a":1,"a":2}',
          '{"b":1,"__proto__":[2],"b":null}',
          '[]',
          '{}',
          '[1,]',
          '{"a":1,}',
        ],
      ),
      fc.string({ maxLength: 3 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

/** A text of JSON, with some of it cut out, put in or said twice. */
const mutated = fc
  .tuple(jsonValue, fc.constantFrom(undefined, 1, '\t'), fc.nat(), fc.nat({ max: 8 }), pieces)
  .map(([value, space, place, length, piece]) => {
    const text = JSON.stringify(value, null, space);
    const at = place % (text.length + 1);
    return text.slice(0, at) + piece + text.slice(at + length);
  });

describe('as JSON.parse', () => {
  test.each([
    ['valid texts', jsonValue.map((value) => JSON.stringify(value))],
    ['changed texts', mutated],
    ['pieces', pieces],
    ['pieces in an array', pieces.map((text) => `[${text}]`)],
    ['pieces in an object', pieces.map((text) => `{"a":${text}}`)],
    ['pieces in a string', pieces.map((text) => `"${text}"`)],
  ])('%s are read, or refused', (name, texts) => {
    fc.assert(
      fc.property(texts, (text) => {
        // Integers that a double would change, and what is beyond all doubles in a field, are tests of their own.
        fc.pre(!/\d{16}/.test(text));
        fc.pre(!(/e\+?\d{3}/i.test(text) && /[[{][\s\S]*[[{]/.test(text)));
        expect(plainlyRead(text)).toEqual(nativelyRead(text));
      }),
      { numRuns: 3_000, seed: propertySeed(`readJson ${name}`) },
    );
  });

  test('every character outside and inside of strings', () => {
    for (let code = 0; code < 0x3000; code += 1) {
      const character = String.fromCharCode(code);
      for (const text of [
        `${character}1`,
        `1${character}`,
        `"${character}"`,
        `"\\${character}"`,
        `[${character}]`,
      ]) {
        expect([text, plainlyRead(text)]).toEqual([text, nativelyRead(text)]);
      }
    }
  });

  test('negative zero stays one', () => {
    expect(Object.is(readJson('-0'), -0)).toBe(true);
    expect(Object.is(readJson('0'), 0)).toBe(true);
  });
});

describe('an object', () => {
  const member = fc.tuple(fc.string({ maxLength: 2 }), fc.integer({ min: 0, max: 9 }));

  test('has its names in the order of their first, with the last value of each and the first that is there twice, however many there are', () => {
    fc.assert(
      fc.property(fc.array(fc.array(member, { maxLength: 40 }), { maxLength: 4 }), (objects) => {
        const text = `[${objects.map((members) => `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`)}]`;
        const expected = objects.map((members) => new Map(members));
        const read = readJson(text);
        expect(read).toEqual(
          expected.map((members, index) => {
            const names = objects[index]?.map(([name]) => name) ?? [];
            const repeated = names.find((name, place) => names.indexOf(name) < place) ?? null;
            return new JsonObject([...members.keys()], [...members.values()], repeated);
          }),
        );
      }),
      { numRuns: 1_000, seed: propertySeed('readJson members') },
    );
  });

  test('keeps whole numbers and names of JavaScript where they were written', () => {
    const text = '{"b":1,"10":2,"2":3,"__proto__":4,"constructor":5,"a":6}';
    expect(writeJson(readJson(text))).toBe(text);
  });
});

test('the digits of integers that a double would change are kept', () => {
  const text = '{"a":[9007199254740993,-12345678901234567890],"b":{"c":9007199254740991}}';
  expect(writeJson(readJson(text))).toBe(
    '{"a":["9007199254740993","-12345678901234567890"],"b":{"c":9007199254740991}}',
  );
  const many = '1'.repeat(400);
  expect(readJson(`[[${many},-${many}]]`)).toEqual([[many, `-${many}`]]);
  expect(writeJson(readJson('{"order":9007199254740993}'))).toBe('{"order":"9007199254740993"}');
  expect(readJson('12345678901234567890')).toBe('12345678901234567890');
});

test('a number beyond all doubles is kept as it was written', () => {
  expect(readJson('[[1e400,-1E+400,1.5e999,1e308,1e-400]]')).toEqual([
    ['1e400', '-1E+400', '1.5e999', 1e308, 0],
  ]);
  expect(readJson('[1e400]')).toEqual(['1e400']);
});

test('a field of the outermost object of a request stays a number, whatever its size', () => {
  expect(plainlyRead('{"state":12345678901234567890}')).toEqual({
    state: 1.2345678901234567e19,
  });
  expect(readJson('12345678901234567890', REQUEST)).toBe(1.2345678901234567e19);
  expect(readJson('[1e400]', REQUEST)).toEqual([Number.POSITIVE_INFINITY]);
});

test('fractions and exponents are left to the double', () => {
  expect(readJson('[[0.12345678901234567890,1e20,123456789012345678e1]]')).toEqual([
    [0.12345678901234568, 1e20, 1.2345678901234568e18],
  ]);
});

test('as many levels as are allowed are read, and brackets in strings are no levels', () => {
  const nested = (open: string, close: string) => open.repeat(NESTING_MAX) + close.repeat(NESTING_MAX);
  for (const text of [nested('[', ']'), nested('{"a":', '}').replace(':}', ':1}')]) {
    expect(writeJson(readJson(text))).toBe(text);
    expect(() => readJson(`[${text}]`)).toThrow(new JsonError(true));
  }
  expect(readJson(JSON.stringify('[{"\\'.repeat(2_000)))).toBe('[{"\\'.repeat(2_000));
  expect(readJson(`[${'[],{},'.repeat(1_000)}[]]`)).toHaveLength(2_001);
});

describe('the place where a text stops being JSON', () => {
  const placeIn = (text: string) => {
    try {
      readJson(text);
    } catch (error) {
      if (error instanceof JsonError) return error.place;
      throw error;
    }
    throw new Error('the text is JSON');
  };
  const at = (line: number, column: number) => ({ line, column, is_end: false });
  const end = (line: number, column: number) => ({ line, column, is_end: true });

  test.each([
    ['{"a": 1,}', at(1, 9)],
    ['{"a" 1}', at(1, 6)],
    ["{'a': 1}", at(1, 2)],
    ['{"a": nil}', at(1, 7)],
    ['{"a": 01}', at(1, 8)],
    ['{"a": 1.x}', at(1, 9)],
    ['{"a": "\\x"}', at(1, 9)],
    ['{"a": "\\u00g0"}', at(1, 12)],
    ['{\n  "a": 1\n  "b": 2\n}', at(3, 3)],
    ['{\r\n  "a": "two\r\nlines"\r\n}', at(2, 12)],
    ['{"a": 1}\n}', at(2, 1)],
    ['', end(1, 1)],
    ['{"a": [1,\n', end(2, 1)],
    ['{"a": "unfinished', end(1, 18)],
    ['{"a": "\\', end(1, 9)],
    ['{"a": "\\u00', end(1, 12)],
    ['{"a": -', end(1, 8)],
  ])('%j', (text, place) => expect(placeIn(text)).toEqual(place));

  test('is the character that cannot be there, whatever comes before and after it', () => {
    const surrounding = fc.tuple(jsonValue, jsonValue, fc.constantFrom(undefined, 1, '\t'));
    fc.assert(
      fc.property(surrounding, ([before, after, space]) => {
        const written = JSON.stringify(before, null, space);
        const lines = `[${written}, `.split('\n');
        const text = `${lines.join('\n')}@${JSON.stringify(after, null, space)}]`;
        expect(placeIn(text)).toEqual(at(lines.length, (lines.at(-1) ?? '').length + 1));
      }),
      { numRuns: 500, seed: propertySeed('readJson place') },
    );
  });

  test('a text that is nested too deeply has none', () => {
    expect(placeIn('['.repeat(NESTING_MAX + 1))).toBeNull();
  });
});
