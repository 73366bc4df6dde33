import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, rotateKey, setKeyLimit } from '../../src/accounts/keys.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import { ERRORS } from '../../src/errors/errors.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { type ErrorBody, expectAnyError, expectDecision } from '../contract/expectations.ts';
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

  for (const [body, is] of [
    [`"${SECRET}"`, 'a string'],
    [`["${SECRET}"]`, 'an array'],
    ['null', 'null'],
  ] as const) {
    test(`a body that is no object: that it is ${is}`, async () => {
      const message = `The request body must be a JSON object, and is ${is}.`;
      for (const path of ['/v1/decisions', '/v1/tokens']) {
        expect(await errorTo(body, path)).toMatchObject({ code: 'missing_model', message, param: 'model' });
      }
      const error = await errorTo(body, '/v1/systemone');
      expect(error).toMatchObject({ code: 'missing_state', message, param: 'state' });
    });
  }

  for (const [changes, code, message] of [
    [{ state: 5 }, 'missing_state', 'The state must be a string, an object or an array, and is a number.'],
    [
      { state: false },
      'missing_state',
      'The state must be a string, an object or an array, and is a boolean.',
    ],
    [
      { state: undefined, input: SECRET },
      'missing_state',
      'The request has no state: beside an object of questions the record is "state", not "input".',
    ],
    [
      { questions: [{ type: 'noul' }] },
      'missing_questions',
      'The questions must be an object from question id to question, and are an array.',
    ],
    [
      { questions: SECRET },
      'missing_questions',
      'The questions must be an object from question id to question, and are a string.',
    ],
    [{ questions: {} }, 'missing_questions', ERRORS.missing_questions.message],
    [{ questions: null }, 'missing_questions', ERRORS.missing_questions.message],
    [{ state: null }, 'missing_state', ERRORS.missing_state.message],
  ] as const) {
    test(`${code}: ${JSON.stringify(Object.keys(changes))}, ${message}`, async () => {
      for (const path of ['/v1/decisions', '/v1/systemone']) {
        const param = code === 'missing_state' ? 'state' : 'questions';
        const error = await errorTo({ ...SMALL_REQUEST, ...changes }, path);
        expect(error).toMatchObject({ code, message, param });
      }
    });
  }

  test('missing_model: a model that there is', async () => {
    const { model, ...unnamed } = SMALL_REQUEST;
    expect(await errorTo(unnamed)).toMatchObject({
      code: 'missing_model',
      message: `The request has no model: send the id of one, such as "${model}".`,
    });
  });

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

  for (const [name, scheme] of [
    ['authorization', 'Bearer '],
    ['x-api-key', ''],
  ] as const) {
    test(`invalid_api_key: the same key twice in ${name}`, async () => {
      const headers = new Headers();
      for (let count = 0; count < 2; count += 1) headers.append(name, `${scheme}${account.key}`);
      expect(await errorOf(await service.fetch('/v1/models', { headers }))).toMatchObject({
        code: 'invalid_api_key',
        message: 'The API key was sent more than once: send it in one header.',
      });
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

  test('insufficient_credit: what is free of holds, and what the hold needs', async () => {
    const poor = await addAccount(service, { credit_dollars: 0.000002, tier: 1 });
    const error = await errorOf(await post(service, poor.key, asking({ type: 'noul' })));
    const [, free, needed] =
      /: ([\d.]+) US dollars are free of holds, and its hold needs ([\d.]+)\.$/.exec(error.message) ?? [];
    expect([error.code, free]).toEqual(['insufficient_credit', '0.000002']);
    // A hold is the exact cost, which the same request has elsewhere.
    const { usage } = await expectDecision(await post(service, account.key, asking({ type: 'noul' })));
    expect(needed).toBe(usage.cost_usd.toFixed(6));
  });

  test('project_spend_limit: the project and its limit', async () => {
    const { key, project_id } = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, { project_id, spend_limit_micros: 0 });
    expect(await errorOf(await post(service, key, SMALL_REQUEST))).toMatchObject({
      code: 'project_spend_limit',
      message:
        'The project "Default" has reached its monthly spend limit of 0.000000 US dollars. It starts anew with the next UTC month.',
    });
  });

  test('api_key_spend_limit: the key and its limit, for the spend of all keys of its rotations, and no other key', async () => {
    const { key, key_id, project_id } = await addAccount(service);
    const { usage } = await expectDecision(await post(service, key, SMALL_REQUEST));
    const rotated = await rotateKey(service.accounts, OPERATOR, { key_id, overlap_ms: DAY_MS });
    // Exactly one request more would fit if the spend of the first key did not count.
    const monthly_limit_micros = Math.round(usage.cost_usd * 1_000_000);
    await setKeyLimit(service.accounts, OPERATOR, { key_id: rotated.id, monthly_limit_micros });
    for (const of_rotation of [key, rotated.key]) {
      expect(await errorOf(await post(service, of_rotation, SMALL_REQUEST))).toMatchObject({
        code: 'api_key_spend_limit',
        message: `The API key "${rotated.name}" has reached its monthly spend limit of ${usage.cost_usd.toFixed(6)} US dollars. It starts anew with the next UTC month.`,
      });
    }
    const other = await createKey(service.accounts, OPERATOR, { project_id, name: 'Other' });
    await expectDecision(await post(service, other.key, SMALL_REQUEST));
    await setKeyLimit(service.accounts, OPERATOR, { key_id, monthly_limit_micros: 2 * monthly_limit_micros });
    await expectDecision(await post(service, rotated.key, SMALL_REQUEST));
  });

  test('rate_limit_exceeded: which limit, and for tokens what the request needs and what is left', async () => {
    const { key, organization_id } = await addAccount(service);
    await setTierSettings(service.accounts, OPERATOR, organization_id, { tokens_per_minute: 45 });
    const { usage } = await expectDecision(await post(service, key, asking({ type: 'noul' })));
    const tokens = await errorOf(
      await post(service, key, asking({ type: 'noul', instructions: 'Is it so?' })),
    );
    const [, needed, left] =
      /^The organization has reached its limit of 45 input tokens per minute: this request needs (\d+), and (\d+) are left\.$/.exec(
        tokens.message,
      ) ?? [];
    expect([tokens.code, Number(left)]).toEqual(['rate_limit_exceeded', 45 - usage.input_tokens]);
    expect(Number(needed)).toBeGreaterThan(usage.input_tokens);
    const large = await errorOf(
      await post(service, key, asking({ type: 'noul', instructions: SECRET.repeat(50) })),
    );
    expect(large.message).toEndWith('are left. It runs when the window is empty.');
    const asked_often = await addAccount(service);
    await setTierSettings(service.accounts, OPERATOR, asked_often.organization_id, {
      requests_per_minute: 1,
    });
    await expectDecision(await post(service, asked_often.key, SMALL_REQUEST));
    expect((await errorOf(await post(service, asked_often.key, SMALL_REQUEST))).message).toBe(
      'The organization has reached its limit of 1 requests per minute.',
    );
  });
});
