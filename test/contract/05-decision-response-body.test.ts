import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { booksOf, closeAudited } from '../support/money.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
});
afterAll(() => closeAudited(service));

describe('Decision response body (HTTP 200)', () => {
  test('exactly the fields of a decision response, and output_tokens for clients that expect it', async () => {
    const { key } = await addAccount(service);
    const body = await expectDecision(await ask(service, key));
    expect(Object.keys(body).sort()).toEqual(
      ['answers', 'created', 'id', 'latency_ms', 'mode', 'model', 'object', 'usage'].sort(),
    );
    expect(Object.keys(body.usage).sort()).toEqual([
      'cost_usd',
      'decisions',
      'input_tokens',
      'output_tokens',
    ]);
  });

  test('id starts with dec_ and is another one each time', async () => {
    const { key } = await addAccount(service);
    const ids = new Set<string>();
    for (let count = 0; count < 3; count += 1) {
      const { id } = await expectDecision(await ask(service, key));
      expect(id).toMatch(/^dec_[0-9A-Za-z]{24}$/);
      ids.add(id);
    }
    expect(ids.size).toBe(3);
  });

  test('object is always decision, created is in Unix seconds, model and mode are those that ran', async () => {
    const { key } = await addAccount(service);
    const from = Math.floor(service.clock.now_ms() / 1_000);
    const body = await expectDecision(await ask(service, key, { mode: 'consistent' }));
    expect(body).toMatchObject({ object: 'decision', model: 'decision-1', mode: 'consistent' });
    expect(body.created).toBeGreaterThanOrEqual(from);
    expect(body.created).toBeLessThanOrEqual(Math.ceil(service.clock.now_ms() / 1_000));
  });

  test('answers: one per question, keyed by question id', async () => {
    const { key } = await addAccount(service);
    const { answers } = await expectDecision(await ask(service, key, { questions: ALL_TYPES }));
    expect(Object.entries(answers).map(([id, { type }]) => [id, type])).toEqual(
      Object.entries(ALL_TYPES).map(([id, { type }]) => [id, type]),
    );
  });

  test('usage.decisions is the number of questions answered', async () => {
    const { key } = await addAccount(service);
    const { usage } = await expectDecision(await ask(service, key, { questions: ALL_TYPES }));
    expect(usage.decisions).toBe(3);
  });

  test('usage.cost_usd is exactly what was deducted', async () => {
    const account = await addAccount(service);
    for (const questions of [SMALL_REQUEST.questions, ALL_TYPES]) {
      const before = (await booksOf(service, account)).credit_micros;
      const { usage } = await expectDecision(await ask(service, account.key, { questions }));
      expect((before - (await booksOf(service, account)).credit_micros) / 1e6).toBe(usage.cost_usd);
    }
  });

  test('latency_ms is the time of the model, within service-processing-ms', async () => {
    const { key } = await addAccount(service);
    const response = await ask(service, key);
    const { latency_ms } = await expectDecision(response);
    expect(latency_ms).toBeGreaterThan(0);
    expect(latency_ms).toBeLessThanOrEqual(Number(response.headers.get('service-processing-ms')));
  });
});

describe('Cost rule', () => {
  test('input tokens at $0.50 per 1M, rounded up to the next 0.000001 dollar', async () => {
    const { key } = await addAccount(service);
    const seen = new Set<number>();
    for (let words = 1; words <= 6; words += 1) {
      const { usage } = await expectDecision(await ask(service, key, { state: 'word '.repeat(words) }));
      seen.add(usage.input_tokens % 2);
      expect(usage.cost_usd).toBe((usage.input_tokens + (usage.input_tokens % 2)) / 2 / 1e6);
    }
    expect(seen).toEqual(new Set([0, 1]));
  });

  test('billed are the record, the instructions and criteria of each question, and a few tokens of formatting', async () => {
    const { key } = await addAccount(service);
    const tokensOf = async (changes: object) =>
      (await expectDecision(await post(service, key, { ...SMALL_REQUEST, ...changes }))).usage.input_tokens;
    const bare = await tokensOf({ state: '', questions: { q: { type: 'noul' } } });
    expect(bare).toBeLessThanOrEqual(8);
    expect(await tokensOf({ state: 'word', questions: { q: { type: 'noul' } } })).toBe(bare + 1);
    expect(await tokensOf({ state: '', questions: { q: { type: 'noul', instructions: 'word' } } })).toBe(
      bare + 1,
    );
    const described = { type: 'noul', criteria: { true: 'word' } };
    expect(await tokensOf({ state: '', questions: { q: described } })).toBeGreaterThan(bare + 1);
    const twice = await tokensOf({ state: '', questions: { q: { type: 'noul' }, r: { type: 'noul' } } });
    expect(twice).toBeGreaterThan(bare);
    expect(twice).toBeLessThan(2 * bare);
  });

  test('question ids, thresholds and unknown fields are not read, and not billed', async () => {
    const { key } = await addAccount(service);
    const plain = await expectDecision(await ask(service, key, { questions: { q: { type: 'noul' } } }));
    const decorated = await expectDecision(
      await ask(service, key, {
        questions: { ['long id '.repeat(50)]: { type: 'noul', threshold: 0.5, note: 'n'.repeat(500) } },
        metadata: 'm'.repeat(500),
      }),
    );
    expect(decorated.usage.input_tokens).toBe(plain.usage.input_tokens);
  });
});
