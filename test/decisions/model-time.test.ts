import { describe, expect, jest, spyOn, test } from 'bun:test';
import { EvaluationTimedOut, expectedDuration_ms } from '../../native/engine.ts';
import { evaluationLimit_ms, ModelDeadline } from '../../src/decisions/model-time.ts';
import { QueueTimedOut } from '../../src/scheduling/model-scheduler.ts';
import { aborted } from '../support/faults.ts';
import { closeAudited } from '../support/money.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';

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
