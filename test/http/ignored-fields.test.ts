import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { ignoredFieldsHeader } from '../../src/decisions/ignored-fields.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { propertySeed } from '../ledger/support.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let account: TestAccount;
beforeAll(async () => {
  service = await startTestService();
  account = await addAccount(service);
});
afterAll(() => closeAudited(service));

async function ignored(changes: Record<string, unknown>, path = '/v1/decisions'): Promise<string | null> {
  const response = await post(service, account.key, { ...SMALL_REQUEST, ...changes }, path);
  await expectDecision(response);
  return response.headers.get('tds-ignored-fields');
}

describe('tds-ignored-fields', () => {
  test('is absent where every field is read', async () => {
    const { refund, ...others } = ALL_TYPES;
    const questions = { ...others, refund: { ...refund, threshold: 0.9, criteria: { yes: 'a', no: 'b' } } };
    expect(await ignored({ mode: 'fast', questions })).toBeNull();
    expect(await ignored({ model: undefined }, '/v1/systemone')).toBeNull();
  });

  test('names the unknown fields of the request and of its questions, each once', async () => {
    const { refund, team } = ALL_TYPES;
    const questions = {
      a: { ...refund, threshhold: 0.5 },
      b: { ...refund, threshhold: 0.5, Criteria: {} },
      c: { ...team, threshold: 0.5 },
    };
    expect(await ignored({ temperature: 0, questions })).toBe('temperature, threshhold, Criteria, threshold');
  });

  test('names those of the criteria of a yes/no question, and no option of a client', async () => {
    const { refund, team } = ALL_TYPES;
    const questions = {
      a: { ...refund, criteria: { True: 'a', False: 'b' } },
      b: { ...refund, criteria: { true: 'a', yes: 'c', false: null, no: 'b' } },
      c: { ...team, criteria: { True: 'a', False: 'b', other: 'c' } },
    };
    expect(await ignored({ questions })).toBe('True, False, yes');
  });

  test('of fields that clients of other services send, too, and none of the record', async () => {
    const sent = { session_id: 's', user: 'u', provider: null, state: { temperature: 1, type: 'noul' } };
    expect(await ignored(sent, '/v1/systemone')).toBe('session_id, user, provider');
  });

  test("of OpenAI's shape, by the names of that shape", async () => {
    const body = {
      model: 'decision-1',
      input: 'I was charged twice.',
      mode: 'consistent',
      metadata: { state: 1 },
      questions: [
        { type: 'predicate', name: 'money', instructions: 'Is it about money?', threshhold: 0.5 },
        { type: 'choice', instructions: 'Which?', choices: [{ value: true }, { value: false }], levels: [] },
        { type: 'score', instructions: 'How bad?', levels: [{ label: 'a' }, { label: 'b' }], threshhold: 1 },
      ],
    };
    for (const path of ['/v1/decisions', '/v1/tokens']) {
      const response = await post(service, account.key, body, path);
      expect([response.status, response.headers.get('tds-ignored-fields')]).toEqual([
        200,
        'mode, metadata, threshhold, levels',
      ]);
    }
    const { mode, metadata, questions, ...right } = body;
    const [{ threshhold, ...question } = {}] = questions;
    const response = await post(service, account.key, { ...right, questions: [question] });
    expect([response.status, response.headers.has('tds-ignored-fields')]).toEqual([200, false]);
  });

  test('at most 8 names of at most 64 characters, which no header or log can trip over', async () => {
    const names = [
      'a\r\nset-cookie: x',
      'żółć',
      '',
      'a, b',
      '🦊'.repeat(40),
      'x'.repeat(100),
      '\ud800',
      '"',
      'ninth',
    ];
    const value = await ignored(Object.fromEntries(names.map((name) => [name, 1])));
    expect(value?.split(', ')).toEqual([
      'a%0D%0Aset-cookie%3A%20x',
      '%C5%BC%C3%B3%C5%82%C4%87',
      '""',
      'a%2C%20b',
      '%F0%9F%A6%8A'.repeat(5),
      'x'.repeat(64),
      '%EF%BF%BD',
      '%22',
    ]);
  });

  test('whatever the names are, a header can carry them and its parts are whole', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 80 }), { maxLength: 8 }), (names) => {
        const value = ignoredFieldsHeader(names);
        expect(new Headers({ name: value }).get('name')).toBe(value);
        expect(value).toMatch(/^[\x20-\x7e]*$/);
        for (const part of value.split(', ')) {
          expect(part.length).toBeLessThanOrEqual(64);
          decodeURIComponent(part);
        }
      }),
      { seed: propertySeed('ignored fields') },
    );
  });

  test('is on no refusal before the model', async () => {
    const response = await ask(service, account.key, { temperature: 0, mode: 'slow' });
    await expectError(response, 'invalid_mode', 'mode');
    expect(response.headers.has('tds-ignored-fields')).toBeFalse();
  });
});

describe('an id that is there twice in one object', () => {
  const question = '{"type": "choice", "criteria": {"a": "x", "b": "y"}}';
  const body = (questions: string) =>
    `{"model": "decision-1", "state": {"a": 1, "a": 2}, "questions": {${questions}}}`;

  for (const [of, questions, param] of [
    ['a question', `"q": ${question}, "p": ${question}, "\\u0071": ${question}`, 'questions.q'],
    ['an option', `"q": ${question.replace('"b"', '"c": "z", "a"')}`, 'questions.q.criteria.a'],
    [
      'a question of many',
      `${Array.from({ length: 20 }, (_, index) => `"q${index}": ${question}`)}, "q7": ${question}`,
      'questions.q7',
    ],
  ] as const) {
    test(`${of}: the model rejects it with its name, and nothing is charged`, async () => {
      const before = await booksOf(service, account);
      await expectError(await post(service, account.key, body(questions)), 'invalid_request', param);
      const { usage_rows } = before;
      expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: usage_rows + 1 });
    });
  }

  test("is the client's own matter in a record", async () => {
    await expectDecision(await post(service, account.key, body(`"q": ${question}`)));
  });
});
