import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import {
  AuthenticationError,
  BadRequestError,
  choice,
  NotFoundError,
  noul,
  score,
  TypeSafeClient,
  UnprocessableEntityError,
} from '@typesafe-ai/sdk';
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

const STATE = { document: 'I was charged twice. Please fix this ASAP.' };

function clientFor(key: string, watched = watchedFetch()): TypeSafeClient {
  return new TypeSafeClient({
    apiKey: key,
    baseURL: service.server.address,
    defaultModel: 'decision-1',
    fetch: watched.fetch,
    logLevel: 'off',
    timeout: 60_000,
  });
}

test('all question types', async () => {
  const client = clientFor((await addAccount(service)).key);
  const { answers, model, usage } = await client.systemOne({
    state: STATE,
    questions: {
      category: choice('What is this ticket about?', {
        billing: null,
        technical: 'bugs',
        other: ['the', 'rest'],
      }),
      urgent: noul('Is it urgent?', { true: 'soon', false: null }),
      severity: score('How severe is it?', ['cosmetic', 'annoying', 'blocking']),
      bare: { type: 'noul' },
    },
  });
  expect(model).toBe('decision-1');
  expect(['billing', 'technical', 'other']).toContain(answers.category.choice);
  expect(answers.urgent.noul).toBeWithin(0, 1.000001);
  expect(answers.severity.legend[2]).toBe('blocking');
  expect(answers.severity.score).toBeWithin(0, 2.000001);
  expect(answers.bare.type).toBe('noul');
  expect(usage.output_tokens).toBe(0);
  expect(Number.isInteger(usage.input_tokens)).toBe(true);
});

test('a state of text, of an object, of a list', async () => {
  const client = clientFor((await addAccount(service)).key);
  for (const state of ['text', { a: { b: 1 } }, ['a', { b: null }]]) {
    const { answers } = await client.systemOne({ state, questions: { q: noul('Is it?') } });
    expect(answers.q.type).toBe('noul');
  }
});

test('the models list', async () => {
  const models = await clientFor((await addAccount(service)).key).models.list();
  expect(models.map(({ name }) => name)).toEqual(['decision-1']);
});

test('retries after a 429, as long as Retry-After says', async () => {
  const { account, watched } = await rateLimited(service);
  await clientFor(account.key, watched).systemOne({ state: STATE, questions: { q: noul('Is it?') } });
  expect(watched.statuses).toEqual([429, 200]);
});

test('retries after a 503', async () => {
  const { key } = await addAccount(service);
  const watched = withoutCatalog(service);
  await clientFor(key, watched).systemOne({ state: STATE, questions: { q: noul('Is it?') } });
  expect(watched.statuses).toEqual([503, 200]);
});

test('a bad key is not retried', async () => {
  const watched = watchedFetch();
  const refused = clientFor(`sk_svc_${'0'.repeat(32)}`, watched).systemOne({
    state: '',
    questions: { q: noul('?') },
  });
  expect(await rejection(refused)).toBeInstanceOf(AuthenticationError);
  expect(await rejection(clientFor('nonsense').models.list())).toBeInstanceOf(AuthenticationError);
  expect(watched.statuses).toEqual([401]);
});

test('refusals come as the errors of their statuses', async () => {
  const client = clientFor((await addAccount(service)).key);
  const questions = { q: noul('?') };
  expect(await rejection(client.systemOne({ state: null, questions }))).toBeInstanceOf(BadRequestError);
  expect(await rejection(client.systemOne({ state: '', questions, model: 'jev-9' }))).toBeInstanceOf(
    NotFoundError,
  );
  const one = { q: choice('?', { only: null }) };
  expect(await rejection(client.systemOne({ state: '', questions: one }))).toBeInstanceOf(
    UnprocessableEntityError,
  );
});
