import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { HTTPClient, OpenRouter } from '@openrouter/sdk';
import { MovableClock } from '../support/clock.ts';
import { closeAudited } from '../support/money.ts';
import { rejection } from '../support/rejection.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { rateLimited, watchedFetch, withoutCatalog } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true, clock: MovableClock.stopped() });
});
afterAll(() => closeAudited(service));

const RETRIES: NonNullable<Parameters<OpenRouter['systemOne']['create']>[1]> = {
  retryCodes: ['429', '5XX'],
  retries: {
    strategy: 'backoff',
    backoff: { initialInterval: 50, maxInterval: 1_000, exponent: 1.5, maxElapsedTime: 30_000 },
    retryConnectionErrors: false,
  },
};

function clientFor(key: string, watched = watchedFetch()): OpenRouter {
  return new OpenRouter({
    apiKey: key,
    serverURL: `${service.server.address}/v1`,
    httpClient: new HTTPClient({ fetcher: watched.fetch }),
  });
}

function request(): Parameters<OpenRouter['systemOne']['create']>[0] {
  return {
    decisionsRequest: {
      model: 'decision-1',
      state: 'I was charged twice. Please fix this ASAP.',
      questions: {
        refund: {
          type: 'noul',
          instructions: 'Do they ask for money back?',
          criteria: { true: 'they want money', false: 'they do not' },
        },
        team: {
          type: 'choice',
          instructions: 'Which team?',
          criteria: { billing: null, technical: { handles: 'bugs' } },
        },
        urgency: {
          type: 'score',
          instructions: ['How', 'urgent?'],
          criteria: ['low', { level: 'middle' }, ['high']],
        },
      },
      user: 'someone',
      sessionId: 'a session',
    },
  };
}

test('all question types pass its schemas', async () => {
  const response = await clientFor((await addAccount(service)).key).systemOne.create(request());
  const { refund, team, urgency } = response.answers;
  expect(response.model).toBe('decision-1');
  expect(refund).toMatchObject({ type: 'noul', noul: expect.any(Number) });
  expect(team).toMatchObject({
    type: 'choice',
    probabilities: expect.any(Object),
    confidence: expect.any(Number),
  });
  expect(urgency).toMatchObject({ type: 'score', score: expect.any(Number), legend: expect.any(Object) });
  expect(response.usage.outputTokens).toBe(0);
  expect(Number.isInteger(response.usage.inputTokens)).toBe(true);
});

test('retries after a 429', async () => {
  const { account, watched } = await rateLimited(service);
  await clientFor(account.key, watched).systemOne.create(request(), RETRIES);
  expect(watched.statuses).toEqual([429, 200]);
});

test('retries after a 503', async () => {
  const { key } = await addAccount(service);
  const watched = withoutCatalog(service);
  await clientFor(key, watched).systemOne.create(request(), RETRIES);
  expect(watched.statuses).toEqual([503, 200]);
});

test('a bad key is not retried', async () => {
  const watched = watchedFetch();
  const client = clientFor(`sk_svc_${'0'.repeat(32)}`, watched);
  expect(await rejection(client.systemOne.create(request(), RETRIES))).toMatchObject({ statusCode: 401 });
  expect(watched.statuses).toEqual([401]);
});
