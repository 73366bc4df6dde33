import { describe, expect, test } from 'bun:test';
import { EvaluationTimedOut } from '../../native/engine.ts';
import { evaluationLimit_ms, ModelDeadline, QueueTimedOut } from '../../src/decisions/model-time.ts';
import { aborted } from '../support/faults.ts';

/** Longer than any test. */
const NEVER_MS = 1_000_000;

test('an evaluation may take what the operator says, or ten times what it should and never less than 300 s', () => {
  expect(evaluationLimit_ms(7_000, 60_000)).toBe(7_000);
  expect(evaluationLimit_ms(null, undefined)).toBe(300_000);
  expect(evaluationLimit_ms(null, 1_000)).toBe(300_000);
  expect(evaluationLimit_ms(null, 60_000)).toBe(600_000);
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
