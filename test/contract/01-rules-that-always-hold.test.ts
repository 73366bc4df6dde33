import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { openPlanner } from '../../native/engine.ts';
import { booksOf, closeAudited, ledgerOf, usageOf } from '../support/money.ts';
import { ALL_TYPES, ask } from '../support/requests.ts';
import {
  addAccount,
  EMBEDDED_MODEL,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
} from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
});
afterAll(() => closeAudited(service));

describe('Rules that always hold', () => {
  const ODD_OPTIONS = [
    '__proto__',
    'constructor',
    'toString',
    'a.b',
    '"',
    '\\',
    '',
    ' ',
    'é',
    '🦊',
    '\ud800',
    '0',
    '-1',
  ];

  test('1. an answer is always one of the options of the client, whatever they are called', async () => {
    const { key } = await addAccount(service);
    const criteria = Object.fromEntries(ODD_OPTIONS.map((id) => [id, 'an option']));
    const { answers } = await expectDecision(
      await ask(service, key, { questions: { q: { type: 'choice', criteria } } }),
    );
    const answer = answers.q;
    if (answer?.type !== 'choice') throw new Error('no choice');
    expect(ODD_OPTIONS).toContain(answer.choice);
    expect(Object.keys(answer.probabilities).sort()).toEqual([...ODD_OPTIONS].sort());
  });

  test('2. the probabilities of one question always sum to 1', async () => {
    const { key } = await addAccount(service);
    const options = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`o${index}`, null]));
    const questions = {
      two: { type: 'choice', criteria: { a: 'x', b: 'y' } },
      many: { type: 'choice', criteria: options },
      levels: { type: 'score', criteria: ['low', 'middle', 'high'] },
    };
    const { answers } = await expectDecision(await ask(service, key, { questions }));
    for (const id of Object.keys(questions)) {
      const answer = answers[id];
      if (answer === undefined || answer.type === 'noul') throw new Error('no probabilities');
      const sum = Object.values(answer.probabilities).reduce((total, value) => total + value, 0);
      expect(Math.abs(sum - 1)).toBeLessThan(1e-9);
    }
  });

  test('4. the credit is reduced by the exact cost of each successful request', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    const { usage } = await expectDecision(await ask(service, account.key, { questions: ALL_TYPES }));
    const after = await booksOf(service, account);
    expect(before.credit_micros - after.credit_micros).toBe(Math.round(usage.cost_usd * 1e6));
    expect(after.held_micros).toBe(0);
  });

  test('4. failed requests are never charged', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    await expectError(await ask(service, account.key, { mode: 'slow' }), 'invalid_mode', 'mode');
    await expectError(
      await ask(service, account.key, { questions: { q: { type: 'noul', criteria: [] } } }),
      'invalid_request',
      'questions.q.criteria',
    );
    // The model's own rejection has a row of usage, without cost.
    expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: before.usage_rows + 1 });
  });

  test('5. requests refused before the model runs are not recorded', async () => {
    const account = await addAccount(service);
    await expectError(await ask(service, account.key, { state: undefined }), 'missing_state', 'state');
    expect(await usageOf(service, account)).toEqual([]);
    expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  });
});

describe('Models', () => {
  test('decision-1 costs $0.50 for 1M input tokens and nothing for output', async () => {
    const { key } = await addAccount(service);
    const { usage } = await expectDecision(await ask(service, key));
    expect(usage.cost_usd).toBe(Math.ceil(usage.input_tokens / 2) / 1e6);
    expect(usage.output_tokens).toBe(0);
  });

  test('decision-1 reads 16K tokens: of a longer record the middle is left out, and not billed', async () => {
    const engine = await EMBEDDED_MODEL.engine();
    const question = { type: 'noul', instructions: 'Is it long?', yes: undefined, no: undefined } as const;
    const plan = await engine.plan({ state: 'word '.repeat(100_000), questions: [question], mode: 'fast' });
    // A record is cut to whole steps of 256 tokens.
    expect(plan.input_tokens).toBeLessThanOrEqual(16_384);
    expect(plan.input_tokens).toBeGreaterThan(16_384 - 256);
  });

  test('a longer record is answered from its start and end, and billed as read', async () => {
    const context_tokens = 256;
    const small = await startTestService({
      openPlanner: () => openPlanner({ gpu: false, threads: 1, context_tokens }),
    });
    try {
      const { key } = await addAccount(small);
      const middle = ' filler'.repeat(2_000);
      const answerTo = async (state: string) => await expectDecision(await ask(small, key, { state }));
      const long = await answerTo(`Start of it.${middle} End of it.`);
      expect(long.usage.input_tokens).toBeLessThanOrEqual(context_tokens);
      expect(long.usage.input_tokens).toBeGreaterThan(context_tokens - context_tokens / 64);
      const otherMiddle = await answerTo(
        `Start of it.${' filler'.repeat(900)} other${' filler'.repeat(1_100)} End of it.`,
      );
      expect(otherMiddle.answers).toEqual(long.answers);
    } finally {
      await closeAudited(small);
    }
  });

  test('chat-1 is not open yet: 404 model_not_found, costs nothing, absent from the list', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    await expectError(await ask(service, account.key, { model: 'chat-1' }), 'model_not_found', 'model');
    expect(await booksOf(service, account)).toEqual(before);
    const list = await service.fetch('/v1/models', { headers: { 'x-api-key': account.key } });
    expect(await list.text()).not.toContain('chat-1');
  });
});
