import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import OpenAI from 'openai';
import { OPERATOR } from '../../src/access/actor.ts';
import { setKeyLimit } from '../../src/accounts/keys.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import { expectDecision } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { rejection } from '../support/rejection.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { rateLimited, type WatchedFetch, watchedFetch } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true, clock: MovableClock.stopped() });
});
afterAll(() => closeAudited(service));

type Request = OpenAI.Decisions.DecisionCreateParams;

function clientFor(key: string, { fetch }: WatchedFetch = watchedFetch()): OpenAI {
  return new OpenAI({ apiKey: key, baseURL: `${service.server.address}/v1`, fetch });
}

/** `ALL_TYPES`, as this SDK asks them. */
const QUESTIONS: Request['questions'] = [
  { type: 'predicate', name: 'refund', instructions: ALL_TYPES.refund.instructions },
  {
    type: 'choice',
    name: 'team',
    instructions: [{ type: 'input_text', text: ALL_TYPES.team.instructions }],
    choices: Object.entries(ALL_TYPES.team.criteria).map(([value, description]) => ({ value, description })),
  },
  {
    type: 'score',
    instructions: ALL_TYPES.urgency.instructions,
    levels: ALL_TYPES.urgency.criteria.map((label) => ({ label })),
  },
];

const REQUEST: Request = {
  model: 'decision-1',
  input: SMALL_REQUEST.state,
  questions: QUESTIONS,
  prompt_cache_key: 'a key',
  prompt_cache_options: { mode: 'explicit', ttl: '30m' },
  safety_identifier: 'a person',
};

describe('client.decisions.create', () => {
  test('gives the answers of the contract, in order, at its price', async () => {
    const account = await addAccount(service);
    const contract = await expectDecision(await ask(service, account.key, { questions: ALL_TYPES }));
    const charged = (await booksOf(service, account)).credit_micros;
    const { answers, model, usage } = await clientFor(account.key).decisions.create(REQUEST);
    expect((await booksOf(service, account)).credit_micros).toBe(2 * charged - 25_000_000);
    const { refund, team, urgency } = contract.answers;
    if (refund?.type !== 'noul' || team?.type !== 'choice' || urgency?.type !== 'score')
      throw new TypeError();
    expect(model).toBe('decision-1');
    expect<unknown>(answers).toEqual([
      { type: 'predicate', name: 'refund', probability: refund.noul },
      {
        type: 'choice',
        name: 'team',
        choice: team.choice,
        confidence: team.confidence,
        probabilities: Object.entries(ALL_TYPES.team.criteria).map(([value]) => ({
          value,
          probability: team.probabilities[value],
        })),
      },
      {
        type: 'score',
        name: null,
        score: urgency.score,
        confidence: urgency.confidence,
        probabilities: ALL_TYPES.urgency.criteria.map((label, value) => ({
          label,
          value,
          probability: urgency.probabilities[value],
        })),
      },
    ]);
    const { input_tokens, cost_usd } = contract.usage;
    expect<unknown>(usage).toEqual({
      input_tokens,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input_tokens,
      cost_usd,
    });
  });

  test('takes the mode from the query, and sends our headers', async () => {
    const { key } = await addAccount(service);
    const fast = clientFor(key).decisions.create(REQUEST).withResponse();
    const consistent = clientFor(key)
      .decisions.create(REQUEST, { query: { mode: 'consistent' } })
      .withResponse();
    expect((await consistent).data.usage.input_tokens).toBeGreaterThan((await fast).data.usage.input_tokens);
    expect((await fast).request_id).toStartWith('req_');
    expect((await fast).response.headers.get('x-ratelimit-limit-requests')).not.toBeNull();
  });

  test('keeps booleans and strings of the same text apart', async () => {
    const { key } = await addAccount(service);
    const values = [true, 'true', false];
    const choices = values.map((value) => ({ value }));
    const { answers } = await clientFor(key).decisions.create({
      ...REQUEST,
      questions: [{ type: 'choice', instructions: 'Is it so?', choices }],
    });
    const [answer] = answers;
    if (answer?.type !== 'choice') throw new TypeError('a choice is answered by a choice');
    expect(answer.probabilities.map(({ value }) => value)).toEqual(values);
    expect(values).toContain(answer.choice);
    const likeliest = answer.probabilities.toSorted((a, b) => b.probability - a.probability)[0];
    expect(answer.choice).toBe(likeliest?.value ?? '');
  });

  test('reads levels that are named by their indexes, and questions without instructions, as the contract does', async () => {
    const { key } = await addAccount(service);
    const criteria = ['can wait', 'this week', 'today'];
    const levels = criteria.map((description, index) => ({ label: String(index), description }));
    const choices = [{ value: 'billing' }, { value: 'technical' }];
    // As the AI SDK's provider for OpenAI sends them.
    const questions = [
      { type: 'score', name: 'urgency', levels },
      { type: 'choice', name: 'team', instructions: null, choices },
    ];
    const response = await post(service, key, { ...REQUEST, questions });
    const { answers, usage }: { answers: unknown; usage: { input_tokens: number } } = JSON.parse(
      await response.text(),
    );
    const contract = await expectDecision(
      await ask(service, key, {
        questions: {
          urgency: { type: 'score', criteria },
          team: { type: 'choice', criteria: { billing: null, technical: null } },
        },
      }),
    );
    const { urgency, team } = contract.answers;
    if (urgency?.type !== 'score' || team?.type !== 'choice') throw new TypeError();
    const probabilities = levels.map(({ label }, value) => ({
      label,
      value,
      probability: urgency.probabilities[label],
    }));
    expect(answers).toMatchObject([
      { score: urgency.score, probabilities },
      { choice: team.choice, confidence: team.confidence },
    ]);
    expect(usage.input_tokens).toBe(contract.usage.input_tokens);
  });

  test('reads one message of a user as its text', async () => {
    const { key } = await addAccount(service);
    const { decisions } = clientFor(key);
    const alone = await decisions.create(REQUEST);
    const content = [{ type: 'input_text' as const, text: SMALL_REQUEST.state }];
    const message = await decisions.create({ ...REQUEST, input: [{ role: 'user', content }] });
    expect(message).toEqual(alone);
  });

  test('retries after a 429, as long as Retry-After says', async () => {
    const { account, watched } = await rateLimited(service);
    await clientFor(account.key, watched).decisions.create(REQUEST);
    expect(watched.statuses).toEqual([429, 200]);
  });

  test('asks once where it would be refused again: a spend limit, a reused idempotency key', async () => {
    const spent = await addAccount(service);
    const limited = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, { ...spent, spend_limit_micros: 0 });
    await setKeyLimit(service.accounts, OPERATOR, { ...limited, monthly_limit_micros: 0 });
    const watched = watchedFetch();
    for (const { key } of [spent, limited]) {
      const refused = clientFor(key, watched).decisions.create(REQUEST);
      expect(await rejection(refused)).toBeInstanceOf(OpenAI.RateLimitError);
    }
    const { decisions } = clientFor((await addAccount(service)).key, watched);
    const headers = { 'idempotency-key': 'one' };
    await decisions.create(REQUEST, { headers });
    const reused = decisions.create({ ...REQUEST, input: 'Another record.' }, { headers });
    expect(await rejection(reused)).toBeInstanceOf(OpenAI.ConflictError);
    expect(watched.statuses).toEqual([429, 429, 200, 409]);
  });

  test('a request that is aborted is not charged', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    const abort = new AbortController();
    const refused = clientFor(account.key).decisions.create(REQUEST, { signal: abort.signal });
    abort.abort();
    expect(await rejection(refused)).toBeInstanceOf(OpenAI.APIUserAbortError);
    expect(await booksOf(service, account)).toEqual(before);
  });

  test('an error has our code, and the path of the field in its shape', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    const image = { type: 'input_image' as const, image_url: 'data:image/png;base64,AA==' };
    const input: Request['input'] = [
      { role: 'user', content: [{ type: 'input_text', text: 'See:' }, image] },
    ];
    const error = await rejection(clientFor(account.key).decisions.create({ ...REQUEST, input }));
    if (!(error instanceof OpenAI.BadRequestError)) throw error;
    const { code, param, type, requestID } = error;
    expect({ code, param, type }).toEqual({
      code: 'invalid_request',
      param: 'input[0].content[1]',
      type: 'invalid_request_error',
    });
    expect(requestID).toStartWith('req_');
    expect(error.message).toContain('This model reads text only');
    // As in the contract's shape, what the model rejects has a row.
    expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: before.usage_rows + 1 });
  });

  test('a bad key is not retried', async () => {
    const watched = watchedFetch();
    const error = await rejection(clientFor(`sk_svc_${'0'.repeat(32)}`, watched).decisions.create(REQUEST));
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(watched.statuses).toEqual([401]);
  });
});

test('its models list works', async () => {
  const { key } = await addAccount(service);
  const ids: string[] = [];
  for await (const model of clientFor(key).models.list()) ids.push(model.id);
  expect(ids).toEqual(['decision-1']);
});

test('it finds a model by id or alias, and is told that there is no other', async () => {
  const { models } = clientFor((await addAccount(service)).key);
  for (const id of ['decision-1', 'jev-latest']) expect((await models.retrieve(id)).id).toBe('decision-1');
  const error = await rejection(models.retrieve('typesafe/jev-latest'));
  expect(error).toBeInstanceOf(OpenAI.NotFoundError);
  expect(error).toMatchObject({ code: 'model_not_found', param: 'model' });
});
