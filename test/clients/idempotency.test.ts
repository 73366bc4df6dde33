import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { noul, TypeSafeClient } from '@typesafe-ai/sdk';
import OpenAI from 'openai';
import { closeAudited, usageOf } from '../support/money.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import type { WatchedFetch } from './support.ts';

/** Neither SDK sends the header by itself; both send it again, as it was given, with each of their retries. */

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
});
afterAll(() => closeAudited(service));

/** A network that loses the first answer, after the service has given it. */
function losingFetch(): WatchedFetch & { readonly replayed: (string | null)[] } {
  const statuses: number[] = [];
  const replayed: (string | null)[] = [];
  return {
    statuses,
    replayed,
    async fetch(input, init) {
      const response = await fetch(input, init);
      statuses.push(response.status);
      replayed.push(response.headers.get('idempotent-replayed'));
      if (statuses.length > 1) return response;
      await response.arrayBuffer();
      throw new TypeError('fetch failed');
    },
  };
}

const HEADERS = { 'Idempotency-Key': 'order-8812' };

test('a retry of @typesafe-ai/sdk after a lost answer gets that answer, and is charged once', async () => {
  const account = await addAccount(service);
  const network = losingFetch();
  const client = new TypeSafeClient({
    apiKey: account.key,
    baseURL: service.server.address,
    defaultModel: 'decision-1',
    fetch: network.fetch,
    logLevel: 'off',
  });
  const asked = { state: 'I was charged twice.', questions: { refund: noul('A refund?') } };
  const { answers } = await client.systemOne(asked, { headers: HEADERS });
  expect(answers.refund.type).toBe('noul');
  expect(network).toMatchObject({ statuses: [200, 200], replayed: [null, 'true'] });
  expect(await usageOf(service, account)).toHaveLength(1);
});

test('a retry of openai after a lost answer gets that answer, and is charged once', async () => {
  const account = await addAccount(service);
  const network = losingFetch();
  const client = new OpenAI({
    apiKey: account.key,
    baseURL: `${service.server.address}/v1`,
    fetch: network.fetch,
  });
  await client.decisions.create(
    {
      model: 'decision-1',
      input: 'I was charged twice.',
      questions: [{ type: 'predicate', name: 'refund', instructions: 'Do they ask for money back?' }],
    },
    { headers: HEADERS },
  );
  expect(network).toMatchObject({ statuses: [200, 200], replayed: [null, 'true'] });
  expect(await usageOf(service, account)).toHaveLength(1);
});
