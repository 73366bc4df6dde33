import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { openPlanner } from '../../native/engine.ts';
import type { DecisionResponse } from '../../src/decisions/schemas.ts';
import { closeAudited } from '../support/money.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
  key = (await addAccount(service)).key;
});
afterAll(() => closeAudited(service));

const RECORD = `${SMALL_REQUEST.state} `.repeat(4);
const QUESTIONS = Object.entries(ALL_TYPES);

/** The answers to all questions, in the mode of the query or of the body. */
async function modeThatRan(query: string, mode?: string): Promise<DecisionResponse> {
  const body = {
    model: 'decision-1',
    state: RECORD,
    questions: ALL_TYPES,
    ...(mode === undefined ? {} : { mode }),
  };
  return await expectDecision(await post(service, key, body, `/v1/decisions${query}`));
}

async function decide(mode: string, questions: object): Promise<DecisionResponse> {
  return await expectDecision(await ask(service, key, { state: RECORD, questions, mode }));
}

/** The main number of an answer: what a difference would show in. */
function numberOf(decision: DecisionResponse, id: string): number {
  const answer = decision.answers[id];
  if (answer === undefined) throw new Error(`no answer to ${id}`);
  switch (answer.type) {
    case 'noul':
      return answer.noul;
    case 'choice':
    case 'score':
      return answer.confidence;
  }
}

describe('Modes', () => {
  test('the mode that the response names is the one that ran and is billed', async () => {
    const fast = await modeThatRan('', 'fast');
    const consistent = await modeThatRan('', 'consistent');
    expect(consistent.usage.input_tokens).not.toBe(fast.usage.input_tokens);
    for (const [query, mode, expected] of [
      ['?mode=consistent', undefined, consistent],
      ['?mode=consistent', 'fast', fast],
      ['?mode=nonsense', 'consistent', consistent],
      ['?mode=consistent&mode=fast', 'fast', fast],
    ] as const) {
      const ran = await modeThatRan(query, mode);
      expect(ran.mode).toBe(expected.mode);
      expect(ran.usage.input_tokens).toBe(expected.usage.input_tokens);
    }
  });

  test('billed tokens: fast reads the record once, consistent with each question', async () => {
    const together = await decide('fast', ALL_TYPES);
    const consistent = await decide('consistent', ALL_TYPES);
    const apart = await Promise.all(QUESTIONS.map(([id, question]) => decide('fast', { [id]: question })));
    const record = (await decide('fast', { q: { type: 'noul' } })).usage.input_tokens;
    const separately = apart.reduce((sum, { usage }) => sum + usage.input_tokens, 0);
    // Sending N questions as N requests bills the record N times.
    expect(separately - together.usage.input_tokens).toBeGreaterThan(1.5 * record);
    // Consistent mode bills each question as fast mode bills it alone, however often it is read to be steady.
    expect(consistent.usage.input_tokens).toBe(separately);
  });

  test('consistent: input_tokens is everything read across all questions', async () => {
    const all = await decide('consistent', ALL_TYPES);
    const apart = await Promise.all(
      QUESTIONS.map(([id, question]) => decide('consistent', { [id]: question })),
    );
    expect(all.usage.input_tokens).toBe(apart.reduce((sum, { usage }) => sum + usage.input_tokens, 0));
  });

  test('tokens per minute: both modes count billed tokens', async () => {
    for (const mode of ['fast', 'consistent']) {
      const account = await addAccount(service);
      const first = await ask(service, account.key, { mode, questions: ALL_TYPES });
      const { usage } = await expectDecision(first);
      const second = await ask(service, account.key, { questions: { q: { type: 'text' } } });
      await second.text();
      const third = await ask(service, account.key);
      const { usage: ofThird } = await expectDecision(third);
      const remaining = Number(third.headers.get('x-ratelimit-remaining-tokens'));
      const estimate = 300_000 - usage.input_tokens - remaining;
      expect(estimate).toBeGreaterThanOrEqual(ofThird.input_tokens);
    }
  });

  for (const mode of ['fast', 'consistent']) {
    test(`other questions in the request never change an answer: ${mode}`, async () => {
      const together = await decide(mode, ALL_TYPES);
      const in_other_order = await decide(mode, Object.fromEntries(QUESTIONS.toReversed()));
      for (const [id, question] of QUESTIONS) {
        const alone = await decide(mode, { [id]: question });
        expect(numberOf(together, id)).toBeCloseTo(numberOf(alone, id), 3);
        expect(numberOf(in_other_order, id)).toBeCloseTo(numberOf(alone, id), 3);
      }
    });
  }

  test('other questions never change what is read of a record that is too long, by a single digit', async () => {
    const small = await startTestService({
      openPlanner: () => openPlanner({ gpu: false, threads: 1, context_tokens: 1_280 }),
    });
    try {
      const account = await addAccount(small);
      const state = Array.from({ length: 1_500 }, (_, index) => `word${index % 97}`).join(' ');
      const noul = { type: 'noul', instructions: 'Is there a word?' };
      const choice = (options: number) => ({
        type: 'choice',
        instructions: 'Which?',
        criteria: Object.fromEntries(
          Array.from({ length: options }, (_, index) => [`o${index}`, null] as const),
        ),
      });
      for (const mode of ['fast', 'consistent']) {
        const noulOf = async (questions: object) =>
          (await expectDecision(await ask(small, account.key, { state, questions, mode }))).answers.noul;
        const alone = await noulOf({ noul });
        expect(await noulOf({ noul, choice: choice(3) })).toEqual(alone);
        expect(await noulOf({ choice: choice(200), noul })).toEqual(alone);
      }
    } finally {
      await closeAudited(small);
    }
  });

  test('both modes return the same response shape', async () => {
    const shape = ({ answers, ...rest }: DecisionResponse) => ({
      fields: Object.keys(rest).sort(),
      answers: Object.entries(answers).map(([id, answer]) => [id, Object.keys(answer).sort()]),
    });
    expect(shape(await decide('consistent', ALL_TYPES))).toEqual(shape(await decide('fast', ALL_TYPES)));
  });

  test('the same request gives the same answer', async () => {
    for (const mode of ['fast', 'consistent']) {
      const first = await decide(mode, ALL_TYPES);
      const second = await decide(mode, ALL_TYPES);
      for (const [id] of QUESTIONS) expect(numberOf(second, id)).toBeCloseTo(numberOf(first, id), 3);
    }
  });
});
