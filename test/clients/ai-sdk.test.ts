import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createTypeSafeAi } from '@ai-sdk/typesafe-ai';
import {
  APICallError,
  type Experimental_DecisionModel,
  experimental_decide,
  experimental_evaluate,
} from 'ai';
import { expectDecision } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { closeAudited } from '../support/money.ts';
import { rejection } from '../support/rejection.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { decisionModelOf, rateLimited, watchedFetch, withoutCatalog } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true, clock: MovableClock.stopped() });
});
afterAll(() => closeAudited(service));

function modelFor(key: string, watched = watchedFetch()): Experimental_DecisionModel {
  const fetching = Object.assign(watched.fetch, { preconnect: fetch.preconnect });
  const provider = createTypeSafeAi({
    apiKey: key,
    baseURL: `${service.server.address}/v1`,
    fetch: fetching,
  });
  return decisionModelOf(provider.evaluationModel('decision-1'));
}

const QUESTIONS = {
  department: {
    type: 'choice',
    instructions: 'Which team should handle this?',
    criteria: { billing: { includes: ['Charges', 'Refunds'] }, technical: ['Bugs', 'Outages'], other: null },
  },
  severity: {
    type: 'score',
    instructions: 'How severe is the issue?',
    criteria: ['Cosmetic', 'Workaround exists', 'Blocking; no workaround'],
  },
  requestsRefund: { type: 'boolean', instructions: 'Is the customer requesting money back?' },
} as const;

test('all question types pass its checks of keys, sums, argmax and weighted mean', async () => {
  const result = await experimental_decide({
    model: modelFor((await addAccount(service)).key),
    state: { message: 'I was charged twice. Please refund the duplicate.' },
    questions: QUESTIONS,
  });
  expect(['billing', 'technical', 'other']).toContain(result.answers.department.choice);
  expect(result.answers.severity.score).toBeWithin(0, 2.000001);
  expect(result.answers.requestsRefund.probability).toBeWithin(0, 1.000001);
  expect(result.usage.inputTokens).toBeGreaterThan(0);
  expect(result.usage.outputTokens).toBe(0);
});

test('under its older name, and with a state of parts', async () => {
  const result = await experimental_evaluate({
    model: modelFor((await addAccount(service)).key),
    state: [
      { type: 'text', text: 'I was charged twice.' },
      { type: 'json', value: { order: 8812, items: ['lamp'] } },
    ],
    questions: QUESTIONS,
  });
  expect(Object.keys(result.answers)).toEqual(Object.keys(QUESTIONS));
});

test.each([
  ['a text', 'I was charged twice.'],
  ['an object', { order: 8812, messages: ['I was charged twice.', 'Please pay one back.'] }],
])('%s, which it sends as a part, is read as the same record without it', async (_, state) => {
  const { key } = await addAccount(service);
  const { usage, response } = await experimental_decide({
    model: modelFor(key),
    state,
    questions: QUESTIONS,
  });
  const { department, severity, requestsRefund } = QUESTIONS;
  const questions = { department, severity, requestsRefund: { ...requestsRefund, type: 'noul' } };
  const direct = await expectDecision(await ask(service, key, { state, questions }));
  expect<unknown>(response?.body).toMatchObject({ answers: direct.answers });
  expect(usage.inputTokens).toBe(direct.usage.input_tokens);
});

test('many options, and answers of many requests, pass its checks', async () => {
  const model = modelFor((await addAccount(service)).key);
  const criteria = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`option ${index}`, null]));
  const levels = Array.from({ length: 10 }, (_, index) => `level ${index}`);
  for (const state of ['Refund me.', 'The app crashes.', 'Thank you!', '']) {
    const { answers } = await experimental_decide({
      model,
      state,
      questions: {
        wide: { type: 'choice', instructions: 'Which?', criteria },
        tall: { type: 'score', instructions: 'How much?', criteria: levels },
      },
    });
    expect(Object.keys(criteria)).toContain(answers.wide.choice);
  }
});

test('retries after a 429, as long as Retry-After says', async () => {
  const { account, watched } = await rateLimited(service);
  await experimental_decide({
    model: modelFor(account.key, watched),
    state: 'Refund me.',
    questions: QUESTIONS,
  });
  expect(watched.statuses).toEqual([429, 200]);
});

test('retries after a 503', async () => {
  const { key } = await addAccount(service);
  const watched = withoutCatalog(service);
  await experimental_decide({ model: modelFor(key, watched), state: 'Refund me.', questions: QUESTIONS });
  expect(watched.statuses).toEqual([503, 200]);
});

test('a bad key is not retried', async () => {
  const watched = watchedFetch();
  const model = modelFor(`sk_svc_${'0'.repeat(32)}`, watched);
  const error = await rejection(experimental_decide({ model, state: 'Refund me.', questions: QUESTIONS }));
  expect(APICallError.isInstance(error) && error.statusCode).toBe(401);
  expect(watched.statuses).toEqual([401]);
});
