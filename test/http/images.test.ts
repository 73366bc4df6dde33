import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { expectAnyError, expectDecision, expectError, platformHeaders } from '../contract/expectations.ts';
import { MODEL_HEADERS } from '../contract/spec.ts';
import { booksOf, closeAudited, usageOf } from '../support/money.ts';
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

const PNG = 'iVBORw0KGgo=';
const IMAGE = { type: 'image', image: PNG };
const QUESTION = SMALL_REQUEST.questions.refund;

/** Images as clients send them, and the field that has them. */
const IMAGES: Readonly<Record<string, readonly [changes: Record<string, unknown>, param: string]>> = {
  'an asset in the place of a word of the record': [
    { state: 'See 8c1e.', assets: { '8c1e': { type: 'image', format: 'png', data_base64: PNG } } },
    'assets',
  ],
  'an asset of a part of its own': [{ assets: { a: { type: 'image', part: 'a' } } }, 'assets'],
  'a list of assets': [{ assets: [{ id: 'a', type: 'image', url: 'https://example.com/a.png' }] }, 'assets'],
  'a part of the record': [{ state: [{ type: 'text', text: 'See:' }, IMAGE] }, 'state'],
  'a part with a source': [{ state: [{ type: 'image', source: { type: 'base64', data: PNG } }] }, 'state'],
  'a part with an address': [
    { state: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
    'state',
  ],
  'a file of an image': [{ state: [{ type: 'file', mediaType: 'image/png', data: PNG }] }, 'state'],
  'a part of a message': [{ state: [{ role: 'user', content: [IMAGE] }] }, 'state'],
  'a part of a message of an object': [
    { state: { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, IMAGE] }] } },
    'state',
  ],
  'a part of the instructions': [
    { questions: { q: { ...QUESTION, instructions: ['Is this a dog?', IMAGE] } } },
    'questions.q.instructions',
  ],
};

/** Records and assets that only look like images. */
const RECORDS: Readonly<Record<string, Record<string, unknown>>> = {
  'an object with a field named image': { state: { image: PNG, title: 'A dog' } },
  'a record of the type image': { state: { type: 'image', url: 'https://example.com/a.png', alt: 'A dog' } },
  'a list of objects with a field named image': { state: [{ image: 'a.png', name: 'A dog' }] },
  'a part that describes an image': { state: [{ type: 'image', alt: 'A dog', data: null }] },
  'a page with images among its blocks': { state: { blocks: [{ type: 'image', url: 'a.png' }] } },
  'a file that is no image': { state: [{ type: 'file', mediaType: 'text/plain', data: 'text' }] },
  'no assets': { assets: {} },
  'an empty list of assets': { assets: [] },
  'assets that are null': { assets: null },
};

describe('images', () => {
  for (const [name, [changes, param]] of Object.entries(IMAGES)) {
    test(`${name}: 400 invalid_request, recorded and not charged`, async () => {
      for (const path of ['/v1/decisions', '/v1/systemone']) {
        const before = await booksOf(service, account);
        const response = await post(service, account.key, { ...SMALL_REQUEST, ...changes }, path);
        expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
        const { error } = await expectAnyError(response);
        expect({ status: response.status, ...error }).toEqual({
          status: 400,
          type: 'invalid_request_error',
          code: 'invalid_request',
          message: 'This model reads text only: send JSON without images.',
          param,
        });
        const { usage_rows } = before;
        expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: usage_rows + 1 });
        expect((await usageOf(service, account)).at(-1)).toMatchObject({
          status: 400,
          questions: 0,
          cost_micros: 0,
        });
      }
    });
  }

  for (const [name, changes] of Object.entries(RECORDS)) {
    test(`${name}: is answered`, async () => {
      await expectDecision(await post(service, account.key, { ...SMALL_REQUEST, ...changes }));
    });
  }

  /** Bodies in OpenAI's shape with an image, and its path. */
  const part = { type: 'input_image', image_url: `data:image/png;base64,${PNG}` };
  const predicate = { type: 'predicate', instructions: 'Is it a dog?' };
  const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' };
  test.each([
    [{ input: [{ role: 'user', content: [part] }], questions: [predicate] }, 'input[0].content[0]'],
    [
      {
        input: [call, { type: 'function_call_output', call_id: 'c1', output: [part] }],
        questions: [predicate],
      },
      'input[1].output[0]',
    ],
    [{ input: 'a', questions: [{ ...predicate, instructions: [part] }] }, 'questions[0].instructions[0]'],
  ])(
    "in OpenAI's shape %#: rejected by the model alike, after the checks of the fields",
    async (body, param) => {
      const before = await booksOf(service, account);
      await expectError(await post(service, account.key, body), 'missing_model', 'model');
      expect(await booksOf(service, account)).toEqual(before);
      const response = await post(service, account.key, { model: 'decision-1', ...body });
      expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
      const { error } = await expectAnyError(response);
      expect({ status: response.status, code: error.code, param: error.param }).toEqual({
        status: 400,
        code: 'invalid_request',
        param,
      });
      expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: before.usage_rows + 1 });
    },
  );

  test("are the model's to reject: after the checks of the fields and the limits", async () => {
    const image = { ...SMALL_REQUEST, state: [IMAGE] };
    await expectError(await post(service, account.key, { ...image, mode: 'slow' }), 'invalid_mode', 'mode');
    const poor = await addAccount(service, { credit_dollars: 0, tier: 1 });
    await expectError(await post(service, poor.key, image), 'insufficient_credit');
    const limited = await addAccount(service);
    await setTierSettings(service.accounts, OPERATOR, limited.organization_id, { requests_per_minute: 1 });
    expect((await post(service, limited.key, image)).status).toBe(400);
    await expectError(await post(service, limited.key, image), 'rate_limit_exceeded');
  });

  test('in a body of several parts: the same, without a record; JSON under that name is read', async () => {
    const form = new FormData();
    form.set('request', JSON.stringify(SMALL_REQUEST));
    form.set('a', new Blob([Buffer.from(PNG, 'base64')], { type: 'image/png' }), 'a.png');
    const headers = { authorization: `Bearer ${account.key}` };
    const before = await booksOf(service, account);
    const response = await service.fetch('/v1/systemone', { method: 'POST', headers, body: form });
    expect(platformHeaders(response)).toEqual([]);
    const { error } = await expectAnyError(response);
    expect([response.status, error.code, error.param]).toEqual([400, 'invalid_request', null]);
    expect(error.message).toContain('reads text only');
    expect(await booksOf(service, account)).toEqual(before);
    await expectDecision(
      await service.fetch('/v1/systemone', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'multipart/form-data' },
        body: JSON.stringify(SMALL_REQUEST),
      }),
    );
  });
});
