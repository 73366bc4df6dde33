import { describe, expect, test } from 'bun:test';
import { AccountError } from '../../src/access/account-error.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { listRecentProblems } from '../../src/observability/recent-problems.ts';
import { ProblemLog, RECENT_PROBLEMS_MAX } from '../../src/problems/problem-log.ts';
import { MovableClock } from '../support/clock.ts';
import { RecordedLog } from '../support/problems.ts';

function setUp() {
  const clock = MovableClock.stopped();
  const problems = new ProblemLog(new RecordedLog('error').log, clock);
  const fail = (request_id: string | null) =>
    problems.report({
      request_id,
      step: 'model',
      code: 'model_unavailable',
      model: 'decision-1',
      error: new Error('what a client wrote', {
        cause: Object.assign(new TypeError('its record'), { code: 'EIO' }),
      }),
    });
  return { clock, problems, fail };
}

describe('the last problems', () => {
  test('are newest first, with what is known of each and without a word that a client wrote', () => {
    const { clock, problems, fail } = setUp();
    fail('req_1');
    clock.advance(1_000);
    fail(null);
    const recent = listRecentProblems(problems, OPERATOR);
    expect(recent).toMatchObject([
      { request_id: null, at_ms: clock.now_ms() },
      {
        request_id: 'req_1',
        at_ms: clock.now_ms() - 1_000,
        step: 'model',
        code: 'model_unavailable',
        model: 'decision-1',
        error: 'Error < TypeError EIO',
        place: expect.stringContaining('recent.test.ts'),
      },
    ]);
    expect(JSON.stringify(recent)).not.toMatch(/client wrote|its record/);
  });

  test('are found by the id of the request, also when a fault lasts', () => {
    const { problems, fail } = setUp();
    for (let count = 0; count < 100; count += 1) fail(`req_${count}`);
    expect(listRecentProblems(problems, OPERATOR, { request_id: 'req_42' })).toMatchObject([
      { request_id: 'req_42' },
    ]);
    expect(listRecentProblems(problems, OPERATOR, { request_id: 'req_none' })).toEqual([]);
  });

  test('are bounded: the oldest go first', () => {
    const { problems, fail } = setUp();
    const total = 2 * RECENT_PROBLEMS_MAX + 3;
    for (let count = 0; count < total; count += 1) fail(`req_${count}`);
    const ids = listRecentProblems(problems, OPERATOR).map(({ request_id }) => request_id);
    expect(ids).toEqual(
      Array.from({ length: RECENT_PROBLEMS_MAX }, (_, index) => `req_${total - 1 - index}`),
    );
    expect(listRecentProblems(problems, OPERATOR, { limit: 2 })).toHaveLength(2);
    expect(listRecentProblems(problems, OPERATOR, { limit: 2 * total })).toHaveLength(RECENT_PROBLEMS_MAX);
  });

  test('are for the operator only', () => {
    const { problems } = setUp();
    expect(() => listRecentProblems(problems, { kind: 'user', user_id: 'user_1' })).toThrow(AccountError);
  });
});
