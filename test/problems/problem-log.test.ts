import { expect, test } from 'bun:test';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { MovableClock } from '../support/clock.ts';
import { RecordedLog } from '../support/problems.ts';

function setUp() {
  const clock = MovableClock.stopped();
  const recorded = new RecordedLog('error');
  const problems = new ProblemLog(recorded.log, clock);
  // One place in the code, as a fault has it.
  const busy = () => Object.assign(new TypeError('busy'), { code: 'SQLITE_BUSY' });
  const fail = (request_id: string | null, error = busy()) =>
    problems.report({
      request_id,
      step: 'hold',
      code: request_id === null ? null : 'billing_unavailable',
      error,
    });
  return { clock, recorded, problems, fail };
}

const SHORT = { msg: 'problem', step: 'hold', error: 'TypeError SQLITE_BUSY' };

test('a fault that lasts: the first request has the stack, every other a short line that leads there', async () => {
  const { clock, recorded, fail } = setUp();
  for (let count = 0; count < 1_000; count += 1) {
    fail(`req_${count}`);
    clock.advance(10);
  }
  const lines = await recorded.problems();
  expect(lines.map(({ request_id }) => request_id)).toEqual(
    Array.from({ length: 1_000 }, (_, count) => `req_${count}`),
  );
  const [first, ...others] = lines;
  expect(first).toMatchObject({ ...SHORT, code: 'billing_unavailable', causes: [{ at: expect.any(Array) }] });
  for (const line of others) {
    expect(line).toMatchObject({ ...SHORT, code: 'billing_unavailable', same_as: 'req_0' });
    expect(line.causes).toBeUndefined();
  }
  const bytes = recorded.text.length;
  expect(bytes / 1_000).toBeLessThan(300);
});

test('problems of two models are never told as one', async () => {
  const { recorded, problems } = setUp();
  const error = new TypeError('no memory');
  for (const model of ['decision-1', 'decision-2', 'decision-1'])
    problems.report({ request_id: `req_${model}`, step: 'model', code: 'model_unavailable', model, error });
  const lines = await recorded.problems();
  expect(lines.map(({ model, same_as }) => [model, same_as])).toEqual([
    ['decision-1', undefined],
    ['decision-2', undefined],
    ['decision-1', 'req_decision-1'],
  ]);
});

test('a minute later the stack is written again', async () => {
  const { clock, recorded, fail } = setUp();
  fail('req_1');
  clock.advance(59_999);
  fail('req_2');
  clock.advance(1);
  fail('req_3');
  fail('req_4');
  const lines = await recorded.problems();
  expect(lines.map(({ causes, same_as }) => [causes !== undefined, same_as])).toEqual([
    [true, undefined],
    [false, 'req_1'],
    [true, undefined],
    [false, 'req_3'],
  ]);
});

test('background work that fails again and again is summed up: when its minute is over, or at the end', async () => {
  const { clock, recorded, problems, fail } = setUp();
  for (let count = 0; count < 500; count += 1) fail(null);
  problems.sumUp();
  expect(await recorded.problems()).toHaveLength(1);
  clock.advance(60_000);
  problems.sumUp();
  problems.sumUp();
  for (let count = 0; count < 3; count += 1) fail(null);
  problems.close();
  problems.close();
  const lines = await recorded.problems();
  expect(lines.map(({ causes, repeated }) => [causes !== undefined, repeated])).toEqual([
    [true, undefined],
    [false, 499],
    [true, undefined],
    [false, 2],
  ]);
  expect(problems.counts().hold).toBe(503);
});

test('another place, another class or another code is a problem of its own', async () => {
  const { recorded, fail } = setUp();
  fail('req_1');
  fail('req_2', Object.assign(new TypeError('elsewhere'), { code: 'SQLITE_BUSY' }));
  fail('req_3', Object.assign(new TypeError('busy'), { code: 'SQLITE_FULL' }));
  fail(null);
  const lines = await recorded.problems();
  expect(lines.map(({ causes }) => causes !== undefined)).toEqual([true, true, true, true]);
});

test('an innermost cause without a stack, as of the PostgreSQL client, leaves the place to the one around it', async () => {
  const { recorded, problems } = setUp();
  const report = (request_id: string, error: Error) => {
    const cause = Object.assign(new Error('reset'), { stack: undefined });
    problems.report({
      request_id,
      step: 'hold',
      code: 'billing_unavailable',
      error: Object.assign(error, { cause }),
    });
  };
  report('req_1', new TypeError('busy'));
  report('req_2', new TypeError('busy'));
  const lines = await recorded.problems();
  expect(lines.map(({ same_as }) => same_as)).toEqual([undefined, undefined]);
  const [second, first] = problems.recent();
  expect(first?.place).toContain('problem-log.test.ts');
  expect(first?.place).not.toBe(second?.place);
});

test('kinds without end take no memory without end, and nothing of them is lost', async () => {
  const { recorded, problems, fail } = setUp();
  const distinct = (count: number) => Object.assign(new TypeError('x'), { code: `E${count}` });
  for (const round of [1, 2]) {
    for (let count = 0; count < 1_000; count += 1) {
      fail(null, distinct(count));
      if (round === 1) fail(null, distinct(count));
    }
  }
  const lines = await recorded.problems();
  const told = lines.reduce((sum, { repeated = 1 }) => sum + repeated, 0);
  expect(told).toBe(3_000);
  expect(problems.counts().hold).toBe(3_000);
});

test('counts are by step, from 0', () => {
  const { problems } = setUp();
  const counts = problems.counts();
  expect(new Set(Object.values(counts))).toEqual(new Set([0]));
  problems.report({ request_id: null, step: 'checkpoint', code: null, error: new Error('x') });
  expect(problems.counts()).toEqual({ ...counts, checkpoint: 1 });
});
