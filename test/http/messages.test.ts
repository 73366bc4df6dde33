import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { type ErrorBody, expectAnyError } from '../contract/expectations.ts';
import { closeAudited } from '../support/money.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
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

/** A word of the client's that no message may repeat. */
const SECRET = 'cl13nt-s3cret';

/** The error of a request, after checking that it quotes nothing of the client's. */
async function errorOf(response: Response): Promise<ErrorBody['error']> {
  const { error } = await expectAnyError(response);
  expect(error.message).not.toContain(SECRET);
  return error;
}

async function errorTo(body: unknown, path = '/v1/decisions'): Promise<ErrorBody['error']> {
  return await errorOf(await post(service, account.key, body, path));
}

const asking = (question: unknown) => ({ ...SMALL_REQUEST, state: SECRET, questions: { q: question } });

describe('a refusal says what to change', () => {
  test('invalid_json: the line and the column, and whether the text ends there', async () => {
    const text = `{\n  "model": "decision-1",\n  "state": "${SECRET}"\n  "questions": {}\n}`;
    expect(await errorTo(text)).toMatchObject({
      code: 'invalid_json',
      message: 'The request body is not valid JSON at line 4, column 3.',
    });
    expect((await errorTo(text.slice(0, -2))).message).toContain('at line 4, column 3.');
    expect((await errorTo(`{"state": "${SECRET}"`)).message).toContain(
      'it ends too early, at line 1, column 26.',
    );
    expect((await errorTo('')).message).toContain('is empty');
  });

  for (const [model, is] of [
    [7, 'a number'],
    [[SECRET], 'an array'],
    [{ id: SECRET }, 'an object'],
    ['', 'the empty string'],
  ] as const) {
    test(`a model of a wrong type: that it is ${is}`, async () => {
      for (const path of ['/v1/decisions', '/v1/systemone']) {
        expect(await errorTo({ ...SMALL_REQUEST, model }, path)).toMatchObject({
          code: path === '/v1/decisions' ? 'missing_model' : 'model_not_found',
          message: `The model must be the id of a model, and is ${is}.`,
          param: 'model',
        });
      }
    });
  }

  test('model_not_found: the decision models that there are', async () => {
    expect(await errorTo({ ...SMALL_REQUEST, model: SECRET })).toMatchObject({
      code: 'model_not_found',
      message: 'This model does not exist or is not open yet. There are: decision-1.',
      param: 'model',
    });
  });

  for (const [name, headers, message] of [
    ['a key that is cut', { authorization: `Bearer sk_svc_${SECRET}` }, 'it has 20 characters of 39'],
    ['another prefix', { 'x-api-key': `sk-${SECRET}-and-much-more-of-it-so-that-it-is-long` }, '"sk_svc_"'],
    ['another scheme', { authorization: `Basic ${SECRET}` }, 'another scheme than Bearer'],
    ['no scheme', { authorization: SECRET }, 'no scheme'],
  ] as const) {
    test(`missing_api_key: ${name}`, async () => {
      for (const [path, method] of [
        ['/v1/decisions', 'POST'],
        ['/v1/models', 'GET'],
      ] as const) {
        const error = await errorOf(await service.fetch(path, { method, headers }));
        expect([error.code, error.message]).toEqual(['missing_api_key', expect.stringContaining(message)]);
      }
    });
  }

  for (const [question, message] of [
    [{ type: 'choice' }, 'A choice needs an object of 2 to 255 options as criteria; it has no criteria.'],
    [
      { type: 'choice', criteria: [SECRET, SECRET] },
      'A choice needs an object of 2 to 255 options as criteria; its criteria are an array of 2.',
    ],
    [
      { type: 'choice', criteria: { [SECRET]: SECRET } },
      'A choice needs an object of 2 to 255 options as criteria; its criteria are an object of 1.',
    ],
    [
      { type: 'score', criteria: Array.from({ length: 256 }, () => SECRET) },
      'A score needs an array of 2 to 255 levels as criteria; its criteria are an array of 256.',
    ],
    [
      { type: 'score', criteria: SECRET },
      'A score needs an array of 2 to 255 levels as criteria; its criteria are a string.',
    ],
    [
      { type: 'score', criteria: null },
      'A score needs an array of 2 to 255 levels as criteria; its criteria are null.',
    ],
  ] as const) {
    test(`invalid_criteria: ${message}`, async () => {
      expect(await errorTo(asking(question))).toMatchObject({
        code: 'invalid_criteria',
        message,
        param: 'questions.q.criteria',
      });
    });
  }
});
