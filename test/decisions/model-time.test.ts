import { afterAll, beforeAll, describe, expect, jest, setDefaultTimeout, spyOn, test } from 'bun:test';
import { EvaluationTimedOut, expectedDuration_ms } from '../../native/engine.ts';
import { evaluationLimit_ms, ModelDeadline } from '../../src/decisions/model-time.ts';
import { QueueTimedOut } from '../../src/scheduling/model-scheduler.ts';
import { answersOf, HEADER, ndjson, record, sendBatch } from '../batches/support.ts';
import { expectDecision } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { aborted, onePlanAtATime } from '../support/faults.ts';
import { closeAudited, usageOf } from '../support/money.ts';
import { ALL_TYPES, ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** Longer than any test. */
const NEVER_MS = 1_000_000;

test('an evaluation may take what the operator says, or ten times what it should and never less than 300 s', () => {
  expect(evaluationLimit_ms(7_000, 60_000)).toBe(7_000);
  expect(evaluationLimit_ms(null, undefined)).toBe(300_000);
  expect(evaluationLimit_ms(null, 1_000)).toBe(300_000);
  expect(evaluationLimit_ms(null, 60_000)).toBe(600_000);
});

test(
  'the limit of a request follows its tokens at the measured speed of its model',
  async () => {
    const service = await startTestService({ cold: true });
    const { key } = await addAccount(service);
    const { models } = service.service.services;
    const open = models.for.bind(models);
    const speed = { ms_per_token: 10_000, ms_per_pair: 0 };
    const ends: { readonly limit_ms: number; readonly before: boolean; readonly after: unknown }[] = [];
    const opened = spyOn(models, 'for').mockImplementation((model) => ({
      ...open(model),
      speed: () => speed,
      answer: async ({ plans }, { signal = AbortSignal.abort(), schedulePlan }) => {
        jest.useFakeTimers();
        try {
          const never = new Promise<never>(() => {});
          const plan = { tokens: 1, decoder: 'small', decoder_tokens: 1 } as const;
          const evaluation = schedulePlan?.(plan, () => never, signal);
          const limit_ms = evaluationLimit_ms(null, expectedDuration_ms(speed, plans));
          jest.advanceTimersByTime(limit_ms - 1);
          const before = signal.aborted;
          jest.advanceTimersByTime(1);
          ends.push({ limit_ms, before, after: signal.reason });
          return await (evaluation ?? never);
        } finally {
          jest.useRealTimers();
        }
      },
    }));
    try {
      expect((await ask(service, key)).status).toBe(502);
    } finally {
      opened.mockRestore();
      await closeAudited(service);
    }
    expect(ends).toMatchObject([{ before: false, after: expect.any(EvaluationTimedOut) }]);
    // A model that was not measured has a limit, too.
    expect(ends[0]?.limit_ms).toBeGreaterThan(evaluationLimit_ms(null, undefined));
  },
  MODEL_TEST_TIMEOUT_MS,
);

describe('latency_ms is the time of the model without the wait for it', () => {
  const PLAN_MS = 1_000;
  /** Why the next plan fails; null for one that is answered. */
  let failure: Error | null = null;
  /** The requests that are still to come to the model before it begins. */
  let awaited = 0;
  let service: TestService;
  beforeAll(async () => {
    const clock = MovableClock.stopped();
    service = await startTestService({
      clock,
      openEngine: (engine) => {
        const one = onePlanAtATime(engine, async (compute) => {
          await eventually(() => awaited <= 0);
          // Those that ended before this plan are told first.
          await new Promise(setImmediate);
          clock.advance(PLAN_MS);
          if (failure === null) return await compute();
          const error = failure;
          failure = null;
          throw error;
        });
        const evaluate: typeof one.evaluate = (...given) => {
          awaited -= 1;
          return one.evaluate(...given);
        };
        return { ...one, evaluate };
      },
    });
  });
  afterAll(() => closeAudited(service));

  for (const { mode, plans } of [
    { mode: 'fast', plans: 1 },
    { mode: 'consistent', plans: 3 },
  ]) {
    test(`of ${mode} requests at once, in their answers and usage rows`, async () => {
      const accounts = await Promise.all(Array.from({ length: 3 }, () => addAccount(service)));
      awaited = accounts.length;
      const responses = await Promise.all(
        accounts.map(({ key }) => ask(service, key, { mode, questions: ALL_TYPES })),
      );
      const answers = await Promise.all(responses.map((response) => expectDecision(response)));
      expect(answers.map(({ latency_ms }) => latency_ms)).toEqual(accounts.map(() => plans * PLAN_MS));
      const rows = await Promise.all(accounts.map((account) => usageOf(service, account)));
      expect(rows.flat().map(({ latency_ms }) => latency_ms)).toEqual(accounts.map(() => plans * PLAN_MS));
      const totals = responses.map(({ headers }) => Number(headers.get('service-processing-ms')));
      expect(Math.max(...totals)).toBe(3 * plans * PLAN_MS);
    });
  }

  test('of a request that failed, in its usage row', async () => {
    const accounts = await Promise.all([addAccount(service), addAccount(service)]);
    failure = new Error('a decode failed');
    const statuses = await Promise.all(accounts.map(async ({ key }) => (await ask(service, key)).status));
    expect(statuses.toSorted()).toEqual([200, 502]);
    const rows = await Promise.all(accounts.map((account) => usageOf(service, account)));
    expect(rows.flat().map(({ latency_ms }) => latency_ms)).toEqual([PLAN_MS, PLAN_MS]);
  });

  test('of the lines of a batch', async () => {
    const account = await addAccount(service);
    const lines = [HEADER, ...Array.from({ length: 4 }, (_, line) => record(line))];
    const answers = await answersOf(await sendBatch(service, account.key, ndjson(lines)));
    expect(answers).toEqual(Array(4).fill(expect.objectContaining({ latency_ms: PLAN_MS })));
  });
});

describe('the time of a request at the model', () => {
  test('ends when its first plan is not scheduled in time, with the time after which it should', async () => {
    const deadline = new ModelDeadline(new AbortController().signal, {
      waiting_ms: 1,
      evaluation_ms: () => NEVER_MS,
    });
    deadline.wait(() => 17);
    await aborted(deadline.signal);
    expect(deadline.signal.reason).toBeInstanceOf(QueueTimedOut);
    expect(deadline.signal.reason).toMatchObject({ retry_after_s: 17 });
    deadline.end();
  });

  test('begins anew with its first scheduled plan, and only with the first', async () => {
    const deadline = new ModelDeadline(new AbortController().signal, {
      waiting_ms: NEVER_MS,
      evaluation_ms: () => 1,
    });
    deadline.wait(() => 17);
    deadline.begin();
    // A request that goes on with another engine waits again.
    deadline.wait(() => 17);
    await aborted(deadline.signal);
    expect(deadline.signal.reason).toBeInstanceOf(EvaluationTimedOut);
    deadline.end();
  });

  test('ends when the client leaves, before and after', () => {
    const limits = { waiting_ms: NEVER_MS, evaluation_ms: () => NEVER_MS };
    const client = new AbortController();
    const deadline = new ModelDeadline(client.signal, limits);
    deadline.wait(() => 17);
    client.abort(new Error('gone'));
    expect(deadline.signal.reason).toMatchObject({ message: 'gone' });
    deadline.end();
    const late = new ModelDeadline(client.signal, limits);
    expect(late.signal.aborted).toBe(true);
    late.end();
  });
});
