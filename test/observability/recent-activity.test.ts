import { describe, expect, test } from 'bun:test';
import {
  type AnsweredRequest,
  type Metrics,
  type MetricsSources,
  NO_METRICS,
} from '../../src/observability/metrics.ts';
import { ACTIVITY_SECONDS, RecentActivity } from '../../src/observability/recent-activity.ts';
import { noProblems } from '../../src/problems/problems.ts';
import { MovableClock } from '../support/clock.ts';

function setUp(metrics: Metrics = NO_METRICS) {
  const clock = MovableClock.stopped();
  const load = { requests: 0, waiting_plans: 0, running_tokens: 0 };
  const activity = new RecentActivity(metrics, clock, () => 1_000);
  const sources: MetricsSources = {
    models: () => [],
    schedulerLoad: () => load,
    answerDrifts: () => [],
    books: { open: { holds: 2, oldest_at_ms: 7 }, unwritten: 1 },
    problems: { counts: () => ({ ...noProblems(), model: 3, charge: 1 }) },
    readiness: { failing: () => Promise.resolve([]) },
    databaseState: () => Promise.reject(new Error('nobody asks')),
    unresolvedEvents: () => Promise.reject(new Error('nobody asks')),
    now_ms: () => clock.now_ms(),
  };
  activity.watch(sources);
  const now = () => {
    const seen = activity.now();
    if (seen === undefined) throw new Error('nobody is watched');
    return seen;
  };
  return { clock, activity, load, now };
}

const answered = (
  code: AnsweredRequest['code'],
  endpoint = '/v1/decisions',
  organization_id: string | null = null,
): AnsweredRequest => ({
  organization_id,
  endpoint,
  model: 'decision-1',
  mode: 'fast',
  code,
  status: code === null ? 200 : 500,
});
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

describe('the recent activity', () => {
  test('counts a request in the second of its answer, by what became of it', () => {
    const { clock, activity, now } = setUp();
    activity.requestAnswered(answered(null));
    activity.requestAnswered(answered('rate_limit_exceeded'));
    clock.advance(1_000);
    activity.requestAnswered(answered('model_unavailable'));
    activity.requestAnswered(answered(null));
    activity.decisionCharged({
      model: 'decision-1',
      mode: 'fast',
      input_tokens: 40,
      questions: 3,
      cost_micros: 4,
    });
    clock.advance(1_000);
    const { history } = now();
    expect(history.times_ms.slice(-2)).toEqual([clock.now_ms() - 2_000, clock.now_ms() - 1_000]);
    expect(history.answered.slice(-2)).toEqual([1, 1]);
    expect(history.refused.slice(-2)).toEqual([1, 0]);
    expect(history.failed.slice(-2)).toEqual([0, 1]);
    expect(history.questions.slice(-2)).toEqual([0, 3]);
    expect(history.input_tokens.slice(-2)).toEqual([0, 40]);
  });

  test('leaves the console out, which looks at it', () => {
    const { clock, activity, now } = setUp();
    activity.requestAnswered(answered(null, '/console'));
    clock.advance(1_000);
    expect(sum(now().history.answered)).toBe(0);
  });

  test('forgets what is older than it remembers, also after a long silence', () => {
    const { clock, activity, now } = setUp();
    for (let second = 0; second < 2 * ACTIVITY_SECONDS; second += 1) {
      activity.requestAnswered(answered(null));
      clock.advance(1_000);
    }
    const { history } = now();
    expect(history.answered).toEqual(Array.from({ length: ACTIVITY_SECONDS - 1 }, () => 1));
    for (const values of Object.values(history)) expect(values).toHaveLength(ACTIVITY_SECONDS - 1);
    clock.advance(ACTIVITY_SECONDS * 1_000);
    expect(sum(now().history.answered)).toBe(0);
  });

  test('keeps the longest queue and the largest delay of a second, and knows where nobody looked', () => {
    const { clock, activity, load, now } = setUp();
    activity.sample();
    clock.advance(100);
    load.requests = 9;
    activity.sample();
    load.requests = 4;
    clock.advance(350);
    activity.sample();
    clock.advance(1_550);
    const { history, queue } = now();
    expect(queue).toEqual(load);
    expect(history.model_requests.slice(-2)).toEqual([9, null]);
    expect(history.memory_bytes.slice(-2)).toEqual([1_000, null]);
    // The last sample was due 100 ms after the one before, and came after 350 ms.
    expect(history.event_loop_lag_ms.slice(-2)).toEqual([250, null]);
  });

  test("has an organization's refusals of the last 24 hours by code, and forgets older ones", () => {
    const { clock, activity } = setUp();
    const refuse = (code: string, organization_id: string | null) =>
      activity.requestAnswered(answered(code, '/v1/decisions', organization_id));
    refuse('rate_limit_exceeded', 'org_a');
    clock.advance(23 * 3_600_000);
    refuse('model_not_found', 'org_a');
    refuse('model_not_found', 'org_a');
    refuse('model_not_found', 'org_b');
    refuse('invalid_api_key', null);
    activity.requestAnswered(answered(null, '/v1/decisions', 'org_a'));
    const counted = () => activity.refusalsOf('org_a').map(({ code, requests }) => [code, requests]);
    expect(counted()).toEqual([
      ['model_not_found', 2],
      ['rate_limit_exceeded', 1],
    ]);
    clock.advance(3_600_000);
    expect(counted()).toEqual([['model_not_found', 2]]);
    clock.advance(24 * 3_600_000);
    expect(counted()).toEqual([]);
    expect(activity.refusalsOf('org_unknown')).toEqual([]);
  });

  test('tells of holds and problems as they are now', () => {
    expect(setUp().now()).toMatchObject({
      holds: { open: 2, oldest_at_ms: 7, unwritten: 1 },
      problems: 4,
    });
  });

  test('passes everything on to the metrics', () => {
    const heard: string[] = [];
    const recorded: Metrics = {
      requestAnswered: () => heard.push('requestAnswered'),
      decisionTimed: () => heard.push('decisionTimed'),
      decisionCharged: () => heard.push('decisionCharged'),
      decisionReplayed: () => heard.push('decisionReplayed'),
      committed: () => heard.push('committed'),
      audited: () => heard.push('audited'),
      watch: () => heard.push('watch'),
    };
    const { activity } = setUp(recorded);
    activity.requestAnswered(answered(null, '/console'));
    activity.decisionTimed({ model: 'm', mode: 'fast', platform_ms: 1, queue_ms: 1, model_ms: 1 });
    activity.decisionCharged({ model: 'm', mode: 'fast', input_tokens: 1, questions: 1, cost_micros: 1 });
    activity.decisionReplayed({ model: 'm', mode: 'fast' });
    activity.committed(1, 1);
    activity.audited(0, 1);
    expect(heard.sort()).toEqual(Object.keys(NO_METRICS).sort());
  });
});
