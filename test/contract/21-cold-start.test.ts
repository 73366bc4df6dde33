import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { booksOf, closeAudited, ledgerOf } from '../support/money.ts';
import { ALL_TYPES, ask } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  stateOf,
  type TestService,
  TINY_MODEL,
  untilReady,
} from '../support/service.ts';
import { expectDecision, expectError, platformHeaders } from './expectations.ts';
import { MODEL_HEADERS, TIERS } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let warm: TestService;
beforeAll(async () => {
  warm = await startTestService();
});
afterAll(() => closeAudited(warm));

/** A record whose text can be longer than its JSON, and questions of every type as often as Tier 1 allows. */
const RECORD = { order: 8812, message: 'I was charged twice.', parcels: [{ late: true }, { late: false }] };
const SMALL = { state: RECORD };
const LARGE = {
  state: RECORD,
  mode: 'consistent',
  questions: Object.fromEntries(
    Array.from({ length: 32 }, (_, index) => [`q${index}`, Object.values(ALL_TYPES)[index % 3]]),
  ),
};

/** Resolves with the cost of a request with a loaded model. */
async function warmCost_micros(request: object): Promise<number> {
  const { usage } = await expectDecision(await ask(warm, (await addAccount(warm)).key, { ...request }));
  return Math.round(usage.cost_usd * 1e6);
}

function remaining(response: Response): string | null {
  return response.headers.get('x-ratelimit-remaining-tokens');
}

async function withColdService(work: (cold: TestService) => Promise<void>): Promise<void> {
  const cold = await startTestService({ cold: true });
  try {
    expect(stateOf(cold.service)).toBe('cold');
    await work(cold);
  } finally {
    await closeAudited(cold);
  }
}

describe('a request that meets a cold model', () => {
  test('with credit for exactly what it costs: it waits, is answered, and nothing is left', async () => {
    const cost_micros = await warmCost_micros(SMALL);
    await withColdService(async (cold) => {
      const account = await addAccount(cold, { credit_dollars: cost_micros / 1e6, tier: 1 });
      const { usage } = await expectDecision(await ask(cold, account.key, SMALL));
      expect(usage.cost_usd).toBe(cost_micros / 1e6);
      expect(await booksOf(cold, account)).toEqual({ credit_micros: 0, held_micros: 0, usage_rows: 1 });
      expect((await ledgerOf(cold, account)).map(({ kind }) => kind)).toEqual(['top_up', 'hold', 'charge']);
    });
  });

  test('with less: 402 insufficient_credit, and the model stays cold', async () => {
    const cost_micros = await warmCost_micros(SMALL);
    await withColdService(async (cold) => {
      const account = await addAccount(cold, { credit_dollars: (cost_micros - 1) / 1e6, tier: 1 });
      await expectError(await ask(cold, account.key, SMALL), 'insufficient_credit');
      expect(stateOf(cold.service)).toBe('cold');
    });
  });

  test('consistent, with credit for exactly what it costs: 503 model_warming_up, and answered afterwards', async () => {
    const cost_micros = await warmCost_micros(LARGE);
    await withColdService(async (cold) => {
      const account = await addAccount(cold, { credit_dollars: cost_micros / 1e6, tier: 1 });
      await expectError(await ask(cold, account.key, LARGE), 'model_warming_up');
      expect(await booksOf(cold, account)).toMatchObject({ credit_micros: cost_micros, held_micros: 0 });
      await untilReady(cold.service);
      await expectDecision(await ask(cold, account.key, LARGE));
      expect((await booksOf(cold, account)).credit_micros).toBe(0);
    });
  });

  test("consistent, with as many questions as Tier 1 allows: it takes of Tier 1's window what it takes when warm", async () => {
    const answered = await ask(warm, (await addAccount(warm, { tier: 1 })).key, LARGE);
    const { usage } = await expectDecision(answered);
    await withColdService(async (cold) => {
      const { key } = await addAccount(cold, { tier: 1 });
      const refused = await ask(cold, key, LARGE);
      await expectError(refused, 'model_warming_up');
      expect(remaining(refused)).toBe(remaining(answered));
      expect(TIERS[0].tpm - Number(remaining(refused))).toBeLessThan(1.05 * usage.input_tokens);
    });
  });

  test('that the model rejects is rejected without loading it', async () => {
    await withColdService(async (cold) => {
      const account = await addAccount(cold);
      const questions = { q: { type: 'noul', instructions: 'word '.repeat(20_000) } };
      await expectError(await ask(cold, account.key, { questions }), 'invalid_request', 'questions.q');
      expect(stateOf(cold.service)).toBe('cold');
      expect(await booksOf(cold, account)).toMatchObject({ held_micros: 0, usage_rows: 1 });
    });
  });
});

test('a request that cannot be planned: 502 model_unavailable, nothing is held, charged or taken of the tokens', async () => {
  let is_broken = true;
  const own = await startTestService({
    cold: true,
    openPlanner: async () => {
      const planner = await TINY_MODEL.planner();
      const plan: typeof planner.plan = async (input) => {
        if (is_broken) throw new Error('no memory for "my secret record"');
        return await planner.plan(input);
      };
      return { ...planner, plan };
    },
  });
  try {
    const account = await addAccount(own);
    const before = await booksOf(own, account);
    const response = await ask(own, account.key);
    const { error } = await expectError(response, 'model_unavailable');
    expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
    expect(error.message).not.toContain('secret');
    expect(await booksOf(own, account)).toEqual({ ...before, usage_rows: before.usage_rows + 1 });
    expect((await ledgerOf(own, account)).map(({ kind }) => kind)).toEqual(['top_up']);
    is_broken = false;
    const answered = await ask(own, account.key);
    await expectDecision(answered);
    expect(remaining(answered)).toBe(remaining(await ask(warm, (await addAccount(warm)).key)));
  } finally {
    await closeAudited(own);
  }
});
