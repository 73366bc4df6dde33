import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { setModelPrice } from '../../src/catalog/changes.ts';
import { type TokenCount, TokenCountSchema } from '../../src/decisions/schemas.ts';
import { expectDecision, expectError, platformHeaders } from '../contract/expectations.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ALL_TYPES, post, SMALL_REQUEST, UNKNOWN_KEY } from '../support/requests.ts';
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
  service = await startTestService({ embedded: true, openEngine: instantEngine });
  account = await addAccount(service);
});
afterAll(() => closeAudited(service));

async function counted(body: unknown, query = ''): Promise<TokenCount> {
  const response = await post(service, account.key, body, `/v1/tokens${query}`);
  const count: unknown = await response.json();
  if (!Value.Check(TokenCountSchema, count)) throw new Error(`no count: ${JSON.stringify(count)}`);
  return count;
}

/** The same record of about 30,000 tokens, of which the model reads 16,384. */
const LONG = Array.from({ length: 10_000 }, (_, index) => `item ${index}`).join(', ');

const BODIES = {
  'a small one': SMALL_REQUEST,
  'all types': { ...SMALL_REQUEST, questions: ALL_TYPES },
  'all types, consistent': { ...SMALL_REQUEST, questions: ALL_TYPES, mode: 'consistent' },
  'a record that is too long': { ...SMALL_REQUEST, state: LONG },
  "OpenAI's shape": {
    model: 'decision-1',
    input: 'I was charged twice.',
    questions: [{ type: 'predicate', instructions: 'Is it about money?' }],
  },
};

describe('POST /v1/tokens', () => {
  for (const [name, body] of Object.entries(BODIES)) {
    test(`${name}: says what the decision then bills and leaves out`, async () => {
      const count = await counted(body);
      const response = await post(service, account.key, body);
      const decision: unknown = await response.json();
      const { input_tokens, cost_usd } = count;
      expect(decision).toMatchObject({ model: count.model, usage: { input_tokens, cost_usd } });
      expect(count.exact).toBe(true);
      const left_out = response.headers.get('tds-record-tokens-left-out');
      expect(left_out).toBe(count.record_tokens_left_out === 0 ? null : String(count.record_tokens_left_out));
    });
  }

  test('the header is there only where the middle of the record was left out', async () => {
    const short = await post(service, account.key, SMALL_REQUEST);
    expect(short.headers.has('tds-record-tokens-left-out')).toBe(false);
    const long = await post(service, account.key, { ...SMALL_REQUEST, state: LONG });
    expect(Number(long.headers.get('tds-record-tokens-left-out'))).toBeGreaterThan(10_000);
  });

  test('a replayed answer says again what was not read', async () => {
    const send = () =>
      service.fetch('/v1/decisions', {
        method: 'POST',
        headers: {
          authorization: `Bearer ${account.key}`,
          'content-type': 'application/json',
          'idempotency-key': 'long',
        },
        body: JSON.stringify({ ...SMALL_REQUEST, state: LONG, threshhold: 0.9 }),
      });
    const unread = ({ headers }: Response) => [
      headers.get('tds-record-tokens-left-out'),
      headers.get('tds-ignored-fields'),
    ];
    const [first, again] = [await send(), await send()];
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(unread(first)).toEqual([expect.stringMatching(/^\d{5}$/), 'threshhold']);
    expect(unread(again)).toEqual(unread(first));
  });

  test('consistent mode reads more than it bills; the mode of the query counts, and the body wins', async () => {
    const body = { ...SMALL_REQUEST, questions: { team: ALL_TYPES.team } };
    const fast = await counted(body);
    const consistent = await counted(body, '?mode=consistent');
    expect([fast.mode, consistent.mode]).toEqual(['fast', 'consistent']);
    expect(fast.read_tokens).toBe(fast.input_tokens);
    expect(consistent.input_tokens).toBe(fast.input_tokens);
    expect(consistent.read_tokens ?? 0).toBeGreaterThan(consistent.input_tokens);
    expect(await counted({ ...body, mode: 'fast' }, '?mode=consistent')).toEqual(fast);
  });

  test('costs by the price of the model, by an alias too', async () => {
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 100_000_000);
    const { model, input_tokens, cost_usd } = await counted({ ...SMALL_REQUEST, model: 'jev-latest' });
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 500_000);
    expect([model, cost_usd]).toEqual(['decision-1', (input_tokens * 100) / 1_000_000]);
  });

  test('is free: no hold, no charge, no row, no request and no token of the minute', async () => {
    const own = await addAccount(service);
    const before = await booksOf(service, own);
    const first = await post(service, own.key, SMALL_REQUEST, '/v1/tokens');
    expect([first.status, platformHeaders(first)]).toEqual([200, []]);
    for (let count = 0; count < 10; count += 1) await post(service, own.key, SMALL_REQUEST, '/v1/tokens');
    expect(await booksOf(service, own)).toEqual(before);
    const decided = await post(service, own.key, SMALL_REQUEST);
    await expectDecision(decided);
    expect(decided.headers.get('x-ratelimit-remaining-requests')).toBe('299');
  });

  test('answers also where the credit would not cover the decision, and names fields that nothing reads', async () => {
    const body = { ...SMALL_REQUEST, state: LONG, temperature: 0 };
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 1_000_000_000);
    const poor = await addAccount(service, { credit_dollars: 5 });
    const response = await post(service, poor.key, body, '/v1/tokens');
    const decided = await post(service, poor.key, body);
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 500_000);
    await expectError(decided, 'insufficient_credit');
    expect([response.status, response.headers.get('tds-ignored-fields')]).toEqual([200, 'temperature']);
  });

  test('each counts as a refusal of its key, and then 429; other keys go on', async () => {
    const own = await addAccount(service);
    const body = { ...SMALL_REQUEST, state: 'x'.repeat(900_000) };
    const statuses = new Set<number>();
    for (let asked = 0; asked < 1_000 && !statuses.has(429); asked += 1) {
      statuses.add((await post(service, own.key, body, '/v1/tokens')).status);
    }
    expect([...statuses]).toEqual([200, 429]);
    expect((await counted(SMALL_REQUEST)).object).toBe('token_count');
  });
});

describe('POST /v1/tokens is refused for what a decision is refused for', () => {
  const { questions, ...no_questions } = SMALL_REQUEST;
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`q${index}`, { type: 'noul' }]));
  const choice = (criteria: unknown) => ({
    ...SMALL_REQUEST,
    questions: { q: { type: 'choice', criteria } },
  });
  const refused = {
    'no JSON': '{',
    'no model': { ...SMALL_REQUEST, model: undefined },
    'no record': { ...SMALL_REQUEST, state: undefined },
    'no questions': no_questions,
    'an unknown model': { ...SMALL_REQUEST, model: 'decision-9' },
    'too many questions': { ...SMALL_REQUEST, questions: many },
    'an unknown type': { ...SMALL_REQUEST, questions: { q: { type: 'text' } } },
    'one option': choice({ a: 'b' }),
    'an unknown mode': { ...SMALL_REQUEST, questions, mode: 'slow' },
    'an image': { ...SMALL_REQUEST, assets: { photo: 'data:' } },
    'a noul with criteria of a wrong type': {
      ...SMALL_REQUEST,
      questions: { q: { type: 'noul', criteria: 1 } },
    },
    'an option that the model cannot read at once': choice({ a: 'word '.repeat(20_000), b: null }),
    "a question of OpenAI's shape that does not fit": { model: 'decision-1', input: 'x', questions: [{}] },
    'a body above 1 MB': { ...SMALL_REQUEST, state: 'x'.repeat(1_048_576) },
  };
  for (const [name, body] of Object.entries(refused)) {
    test(name, async () => {
      const decided = await post(service, account.key, body);
      const expected: unknown = await decided.json();
      const response = await post(service, account.key, body, '/v1/tokens');
      const request_id = response.headers.get('x-request-id');
      expect(decided.status).not.toBe(200);
      expect(response.status).toBe(decided.status);
      expect(await response.json()).toEqual(Object.assign({}, expected, { request_id }));
      expect(platformHeaders(response)).toEqual([]);
    });
  }

  test('no key, an unknown one, and Tier 0', async () => {
    const unsigned = await service.fetch('/v1/tokens', { method: 'POST', body: '{}' });
    await expectError(unsigned, 'missing_api_key');
    await expectError(await post(service, UNKNOWN_KEY, SMALL_REQUEST, '/v1/tokens'), 'invalid_api_key');
    const { key } = await addAccount(service, { credit_dollars: 0 });
    await expectError(await post(service, key, SMALL_REQUEST, '/v1/tokens'), 'insufficient_credit');
  });

  test('another compression, which is told which ones there are', async () => {
    const response = await service.fetch('/v1/tokens', {
      method: 'POST',
      headers: { authorization: `Bearer ${account.key}`, 'content-encoding': 'lzma' },
      body: '{}',
    });
    expect([response.status, response.headers.get('accept-encoding')]).toEqual([
      415,
      'gzip, deflate, br, zstd',
    ]);
  });
});
