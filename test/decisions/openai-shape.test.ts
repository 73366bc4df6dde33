import { describe, expect, test } from 'bun:test';
import { recordText } from '../../native/plan/render.ts';
import { recordOf } from '../../src/decisions/openai/input.ts';
import { OpenAiTranslation } from '../../src/decisions/openai/openai-shape.ts';
import { DecisionRefusal } from '../../src/decisions/refusal.ts';
import { jsonValueOf } from '../../src/json/json-value.ts';

function refusalOf(body: unknown): DecisionRefusal {
  const refusal = new OpenAiTranslation().request(jsonValueOf(body));
  if (!(refusal instanceof DecisionRefusal)) throw new TypeError('the body is taken');
  return refusal;
}

const PREDICATE = { type: 'predicate', instructions: 'Is it so?' };
const CALL = { type: 'function_call', call_id: 'c1', name: 'find_order', arguments: '{"id":8812}' };

describe('a body of the contract stays as it is', () => {
  test.each([
    [{ model: 'decision-1', state: 'a', questions: {} }],
    [{ model: 'decision-1', input: 'a', questions: {} }],
    [{ model: 'decision-1', state: 'a', input: 'b', questions: { q: PREDICATE } }],
    [{ model: 'decision-1', state: 'a', questions: [PREDICATE] }],
    [[]],
    ['text'],
  ])('%j', (body) => {
    const value = jsonValueOf(body);
    const translation = new OpenAiTranslation();
    expect(translation.request(value)).toBe(value);
    const refusal = new DecisionRefusal('missing_state', { param: 'state' });
    expect(translation.refusal(refusal)).toBe(refusal);
  });
});

describe('the record keeps roles and order', () => {
  test('of messages, calls and their outputs', () => {
    const record = recordOf(
      jsonValueOf([
        { role: 'system', content: 'You help customers.' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Where is it?' },
            { type: 'input_json', data: { order: 8812 } },
          ],
        },
        CALL,
        { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'on its way' }] },
        { type: 'custom_tool_call', call_id: 'c2', name: 'shell', input: 'ls' },
        { type: 'custom_tool_call_output', call_id: 'c2', output: 'a.txt' },
        { role: 'assistant', content: [{ type: 'output_text', text: 'It is on its way.' }], phase: null },
      ]),
    );
    if (record instanceof DecisionRefusal) throw new TypeError(record.message);
    expect(recordText(record).split('\n')).toEqual([
      '- system: You help customers.',
      '- user:',
      '  - Where is it?',
      '  - order: 8812',
      '- function_call:',
      '  name: find_order',
      '  arguments:',
      '   id: 8812',
      '- function_call_output:',
      '  name: find_order',
      '  output: on its way',
      '- custom_tool_call:',
      '  name: shell',
      '  input: ls',
      '- custom_tool_call_output:',
      '  name: shell',
      '  output: a.txt',
      '- assistant: It is on its way.',
    ]);
  });

  test('arguments keep every digit of their numbers', () => {
    const record = recordOf(jsonValueOf([{ ...CALL, arguments: '{"id":9007199254740993,"sum":1e400}' }]));
    if (record instanceof DecisionRefusal) throw new TypeError(record.message);
    expect(recordText(record)).toContain('id: 9007199254740993\n   sum: 1e400');
  });

  test('arguments that are no JSON are read as they are', () => {
    const record = recordOf(jsonValueOf([{ ...CALL, arguments: '{"id":' }]));
    if (record instanceof DecisionRefusal) throw new TypeError(record.message);
    expect(recordText(record)).toContain('arguments: {"id":');
  });
});

test.each([
  ['that only count are left out', ['0', '1'], ['late', 'early']],
  ['that say something stay', ['0', '10'], ['0: late', '10: early']],
])('labels of described levels %s', (_, [a = '', b = ''], levels) => {
  const question = {
    type: 'score',
    levels: [
      { label: a, description: 'late' },
      { label: b, description: 'early' },
    ],
  };
  const body = new OpenAiTranslation().request(jsonValueOf({ input: 'a', questions: [question] }));
  expect(body).toEqual(
    jsonValueOf({
      model: null,
      state: 'a',
      questions: { 0: { type: 'score', instructions: null, criteria: levels } },
    }),
  );
});

const BOTH = { state: 'a', input: 'b', questions: [PREDICATE] };
const CHOICE = { type: 'choice', instructions: 'Which?' };
const SCORE = { type: 'score', instructions: 'How much?' };

describe('a field that does not fit is named', () => {
  test.each<[code: string, param: string, body: Record<string, unknown>]>([
    ['missing_questions', 'questions', BOTH],
    ['missing_questions', 'questions', { questions: [] }],
    ['invalid_request', 'input', { input: 5 }],
    ['invalid_request', 'input', { input: [] }],
    ['invalid_request', 'input[0]', { input: ['text'] }],
    ['invalid_request', 'input[0].type', { input: [{ type: 'reasoning' }] }],
    ['invalid_request', 'input[0].role', { input: [{ role: 'robot', content: 'a' }] }],
    ['invalid_request', 'input[0].content', { input: [{ role: 'user' }] }],
    ['invalid_request', 'input[0].content[0]', { input: [{ role: 'user', content: ['a'] }] }],
    [
      'invalid_request',
      'input[0].content[0].type',
      { input: [{ role: 'user', content: [{ type: 'toString' }] }] },
    ],
    [
      'invalid_request',
      'input[0].content[0].text',
      { input: [{ role: 'user', content: [{ type: 'input_text' }] }] },
    ],
    [
      'invalid_request',
      'input[0].content[0].data',
      { input: [{ role: 'user', content: [{ type: 'input_json', data: 1 }] }] },
    ],
    ['invalid_request', 'input[0].arguments', { input: [{ ...CALL, arguments: {} }] }],
    [
      'invalid_request',
      'input[0].call_id',
      { input: [{ type: 'function_call_output', call_id: 'c1', output: '' }] },
    ],
    ['invalid_question_type', 'questions[1].type', { questions: [PREDICATE, { type: 'noul' }] }],
    ['invalid_question_type', 'questions[0].type', { questions: ['text'] }],
    ['invalid_request', 'questions[0].name', { questions: [{ ...PREDICATE, name: 5 }] }],
    ['invalid_request', 'questions[0].instructions', { questions: [{ type: 'predicate' }] }],
    ['invalid_criteria', 'questions[0].choices', { questions: [CHOICE] }],
    ['invalid_criteria', 'questions[0].choices', { questions: [{ ...CHOICE, choices: [{ value: 'a' }] }] }],
    ['invalid_criteria', 'questions[0].choices', { questions: [{ ...CHOICE, choices: ['a', 'b'] }] }],
    [
      'invalid_criteria',
      'questions[0].choices[1]',
      { questions: [{ ...CHOICE, choices: [{ value: 'a' }, { value: 5 }] }] },
    ],
    [
      'invalid_criteria',
      'questions[0].choices[1].value',
      { questions: [{ ...CHOICE, choices: [{ value: 'a' }, { value: 'a' }] }] },
    ],
    [
      'invalid_criteria',
      'questions[0].levels',
      { questions: [{ ...SCORE, levels: Array(256).fill({ label: 'a' }) }] },
    ],
    [
      'invalid_criteria',
      'questions[0].levels[0]',
      { questions: [{ ...SCORE, levels: [{ label: 1 }, { label: 'b' }] }] },
    ],
    [
      'invalid_criteria',
      'questions[0].levels[1]',
      { questions: [{ ...SCORE, levels: [{ label: 'a' }, { label: 'b', description: 1 }] }] },
    ],
  ])('%s at %s: %j', (code, param, body) => {
    const refusal = refusalOf({ model: 'decision-1', input: 'a', questions: [PREDICATE], ...body });
    expect({ code: refusal.code, param: refusal.param }).toMatchObject({ code, param });
  });
});
