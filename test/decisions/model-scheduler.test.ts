import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { type DecisionEngine, EngineFailed, EvaluationFailed } from '../../native/engine.ts';
import { planTokens } from '../../native/plan/plan.ts';
import { scoreCount } from '../../src/questions/question.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { eventually } from '../support/eventually.ts';
import { aborted } from '../support/faults.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ask, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** A plan that the engine is evaluating, until the test ends it. */
interface Evaluation {
  readonly organization_id: string;
  readonly end: (error?: Error) => void;
}

let own: TestService | undefined;
afterEach(async () => {
  if (own !== undefined) await closeAudited(own);
  own = undefined;
});

/** A real service whose engines plan as the real one does, and whose evaluations end when the test says so. */
async function startControlled(options: Pick<TestServiceOptions, 'queue_limit' | 'evaluation_ms'> = {}) {
  const running: Evaluation[] = [];
  const opened = { count: 0 };
  const service = await startTestService({
    ...options,
    embedded: true,
    openEngine: (real) => {
      opened.count += 1;
      return controlled(real, running);
    },
  });
  own = service;
  return { service, running, opened };
}

function controlled(real: DecisionEngine, running: Evaluation[]): DecisionEngine {
  return {
    facts: real.facts,
    plan: (input) => real.plan(input),
    async evaluate({ input, plans }, { scope, schedulePlan, signal }) {
      const scores = input.questions.map((question) => Array<number>(scoreCount(question)).fill(0));
      if (schedulePlan === undefined || signal === undefined) return scores;
      const evaluations = plans.map((one) =>
        schedulePlan(
          { tokens: planTokens(one), decoder: 'small', decoder_tokens: 1 },
          async () => {
            const ended = Promise.withResolvers<void>();
            const evaluation: Evaluation = {
              organization_id: scope,
              end: (error) => (error === undefined ? ended.resolve() : ended.reject(error)),
            };
            running.push(evaluation);
            await Promise.race([ended.promise, aborted(signal)]).finally(() =>
              running.splice(running.indexOf(evaluation), 1),
            );
          },
          signal,
        ),
      );
      await Promise.all(evaluations);
      return scores;
    },
    close: () => Promise.resolve(),
  };
}

async function heldMicros(service: TestService, account: TestAccount): Promise<number> {
  return (await booksOf(service, account)).held_micros;
}

/** Sends so many requests about 2,500 words, and returns when all of them hold their credit. */
async function flood(service: TestService, account: TestAccount, count: number) {
  const send = () =>
    ask(service, account.key, { state: 'The parcel is late and nobody calls. '.repeat(357) });
  const first = send();
  await eventually(async () => (await heldMicros(service, account)) > 0);
  const one_micros = await heldMicros(service, account);
  const responses = [first, ...Array.from({ length: count - 1 }, send)];
  await eventually(async () => (await heldMicros(service, account)) === count * one_micros);
  return responses;
}

test('a small request is answered next, while sixty large ones of another organization wait', async () => {
  const { service, running } = await startControlled();
  const [a, b] = [await addAccount(service), await addAccount(service)];
  const large = await flood(service, a, 60);
  await eventually(() => running.length === 1);
  const small = ask(service, b.key);
  await eventually(async () => (await heldMicros(service, b)) > 0);
  const order: string[] = [];
  const answered = Promise.all([...large, small].map(async (response) => expectDecision(await response)));
  while (order.length < 61) {
    await eventually(() => running.length > 0);
    expect(running).toHaveLength(1);
    const [next] = running;
    order.push(next?.organization_id ?? '');
    next?.end();
    await eventually(() => !running.includes(next ?? { organization_id: '', end: () => {} }));
  }
  await answered;
  expect(order.indexOf(b.organization_id)).toBe(1);
});

test('who fills the queue is refused with Retry-After, not charged, and the others are not refused', async () => {
  const { service, running } = await startControlled({ queue_limit: 8 });
  const [a, b] = [await addAccount(service), await addAccount(service)];
  const before = await booksOf(service, a);
  const of_a = Array.from({ length: 12 }, () => ask(service, a.key));
  let refused = 0;
  for (const response of of_a) void response.then(({ status }) => (refused += status === 502 ? 1 : 0));
  await eventually(() => refused === 8);
  const of_b = ask(service, b.key);
  await eventually(async () => (await heldMicros(service, b)) > 0);
  const answered = { count: 0 };
  for (const response of [...of_a, of_b])
    void response.then(({ status }) => (answered.count += status === 200 ? 1 : 0));
  while (answered.count < 5) {
    running[0]?.end();
    await new Promise(setImmediate);
  }
  await expectDecision(await of_b);
  let cost_micros = 0;
  for (const response of await Promise.all(of_a)) {
    if (response.status === 200) {
      cost_micros += Math.round((await expectDecision(response)).usage.cost_usd * 1e6);
      continue;
    }
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    await expectError(response, 'model_unavailable');
  }
  expect(await booksOf(service, a)).toEqual({
    credit_micros: before.credit_micros - cost_micros,
    held_micros: 0,
    usage_rows: 12,
  });
});

test('a client that leaves while its request waits gives its place up at once', async () => {
  const { service, running } = await startControlled({ queue_limit: 3 });
  const account = await addAccount(service);
  const first = ask(service, account.key);
  await eventually(() => running.length === 1);
  const held = await heldMicros(service, account);
  const client = new AbortController();
  const leaving = service.fetch('/v1/decisions', {
    method: 'POST',
    headers: { authorization: `Bearer ${account.key}` },
    body: JSON.stringify(SMALL_REQUEST),
    signal: client.signal,
  });
  await eventually(async () => (await heldMicros(service, account)) === 2 * held);
  await expectError(await ask(service, account.key), 'model_unavailable');
  client.abort();
  await expect(leaving).rejects.toThrow();
  await eventually(async () => (await heldMicros(service, account)) === held);
  const second = ask(service, account.key);
  await eventually(async () => (await heldMicros(service, account)) === 2 * held);
  running[0]?.end();
  await expectDecision(await first);
  await eventually(() => running.length === 1);
  running[0]?.end();
  await expectDecision(await second);
});

test('an evaluation that takes too long: 502, not charged, given up, and the engine goes on', async () => {
  // Long enough for the evaluation that the test ends itself, also on a machine that is busy.
  const { service, running, opened } = await startControlled({ evaluation_ms: 1_000 });
  const account = await addAccount(service);
  const before = await booksOf(service, account);
  const response = await ask(service, account.key);
  const { error } = await expectError(response, 'model_unavailable');
  expect(error.message).toBe('The model did not answer in time.');
  expect(await booksOf(service, account)).toEqual({ ...before, usage_rows: 1 });
  await eventually(() => running.length === 0);
  const next = ask(service, account.key);
  await eventually(() => running.length === 1);
  running[0]?.end();
  await expectDecision(await next);
  expect(opened.count).toBe(1);
});

test('the failure of one plan is its own; that of the engine is not the failure of what waits', async () => {
  const { service, running, opened } = await startControlled();
  const [a, b] = [await addAccount(service), await addAccount(service)];
  const failing = ask(service, a.key);
  await eventually(() => running.length === 1);
  const waiting = ask(service, b.key);
  await eventually(async () => (await heldMicros(service, b)) > 0);
  running[0]?.end(new EvaluationFailed('a logit is no number'));
  await expectError(await failing, 'model_unavailable');
  await eventually(() => running[0]?.organization_id === b.organization_id);
  running[0]?.end();
  await expectDecision(await waiting);
  expect(opened.count).toBe(1);

  const broken = ask(service, a.key);
  await eventually(() => running.length === 1);
  const moved = ask(service, b.key);
  await eventually(async () => (await heldMicros(service, b)) > 0);
  running[0]?.end(new EngineFailed('a decode failed'));
  await expectError(await broken, 'model_unavailable');
  await eventually(() => running[0]?.organization_id === b.organization_id);
  expect(opened.count).toBe(2);
  running[0]?.end();
  await expectDecision(await moved);
});
