import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { DecisionResponseSchema } from '../../src/decisions/schemas.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

test('a decision is answered, billed and recorded', async () => {
  const { key } = addAccount(service);
  const response = await post(service, key, SMALL_REQUEST);
  const body: unknown = await response.json();
  expect(response.status).toBe(200);
  expect([...Value.Errors(DecisionResponseSchema, body)]).toEqual([]);
});
