import { describe, expect, test } from 'bun:test';
import { parseDecisionRequest } from '../../src/decisions/request.ts';
import { JsonObject, jsonValueOf } from '../../src/json/json-value.ts';

const QUESTIONS = { q: { type: 'noul' } };

function requestOf(state: unknown) {
  const body = new JsonObject(['state', 'questions'], [jsonValueOf(state), jsonValueOf(QUESTIONS)]);
  return parseDecisionRequest(body, null, 1);
}

const text = (content: unknown) => ({ type: 'text', text: content });
const json = (value: unknown) => ({ type: 'json', value });

describe('a list of text and json parts is the record in them', () => {
  test.each<[name: string, state: unknown, record: unknown]>([
    ['one text', [text('a')], 'a'],
    ['an empty text', [text('')], ''],
    ['two texts', [text('a'), text('b')], 'a\nb'],
    ['one object', [json({ a: 1 })], { a: 1 }],
    ['one list', [json(['a', 'b'])], ['a', 'b']],
    ['a mixture', [text('a'), json({ b: 1 }), text('c'), text('d')], ['a', { b: 1 }, 'c\nd']],
    ['a value that is no record alone', [json(null)], [null]],
    ['options of a provider', [{ ...text('a'), providerOptions: { typesafe: {} } }], 'a'],
  ])('%s', (_, state, record) => {
    expect(requestOf(state)).toMatchObject({ state: jsonValueOf(record), rejection: null });
  });
});

describe('any other list is a record as it is', () => {
  test.each<[name: string, state: unknown]>([
    ['an empty list', []],
    ['a text beside a part', [text('a'), 'b']],
    ['another type', [text('a'), { type: 'file', data: 'a' }]],
    ['another field', [{ ...text('a'), id: 1 }]],
    ['a part without content', [{ type: 'json' }]],
    ['a text that is none', [text(1)]],
    ['the content of the other type', [{ type: 'json', text: 'a' }]],
    ['a part alone', text('a')],
  ])('%s', (_, state) => {
    expect(requestOf(state)).toMatchObject({ state: jsonValueOf(state) });
  });
});

test('an image in a part is refused as it is without the part', () => {
  const image = { type: 'image', image: 'AA==' };
  expect(requestOf([json([image])])).toMatchObject({
    rejection: { code: 'invalid_request', param: 'state' },
  });
});
