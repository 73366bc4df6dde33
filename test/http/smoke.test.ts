import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { DecisionResponseSchema } from '../../src/decisions/schemas.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, startTestService, type TestService } from '../support/service.ts';

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
