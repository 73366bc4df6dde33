import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import OpenAI from 'openai';
import { booksOf, closeAudited } from '../support/money.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { rejection } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => closeAudited(service));

test('its decisions have another shape: a clear 400 that names the field, nothing charged', async () => {
  const account = await addAccount(service);
  const before = await booksOf(service, account);
  const client = new OpenAI({ apiKey: account.key, baseURL: `${service.server.address}/v1` });
  const refused = client.decisions.create({
    model: 'decision-1',
    input: 'I was charged twice.',
    questions: [{ type: 'predicate', name: 'refund', instructions: 'Do they ask for money back?' }],
  });
  const error = await rejection(refused);
  if (!(error instanceof OpenAI.BadRequestError)) throw error;
  expect(error.code).toBe('missing_state');
  expect(error.param).toBe('state');
  expect(error.message).toContain('state');
  expect(await booksOf(service, account)).toEqual(before);
});

test('its models list works', async () => {
  const { key } = await addAccount(service);
  const client = new OpenAI({ apiKey: key, baseURL: `${service.server.address}/v1` });
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual(['decision-1']);
});
