import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { CircuitBreaker } from '../../src/upstreams/circuit-breaker.ts';

function closed(): CircuitBreaker {
  const breaker = new CircuitBreaker();
  breaker.beginTrial(0);
  breaker.trialSucceeded();
  return breaker;
}

describe('a breaker', () => {
  test('is untried, and gives no requests, until the member has answered a trial, of which there is one at a time', () => {
    const breaker = new CircuitBreaker();
    expect(breaker.state).toBe('untried');
    breaker.distrust();
    expect(breaker.state).toBe('untried');
    breaker.succeeded();
    expect(breaker.state).toBe('untried');
    expect(breaker.beginTrial(0)).toBe(true);
    expect(breaker.state).toBe('half_open');
    expect(breaker.beginTrial(0)).toBe(false);
    breaker.trialSucceeded();
    expect(breaker.state).toBe('closed');
  });

  test('that is distrusted from a time on is open at once, and is tried then', () => {
    const breaker = closed();
    breaker.distrust(4_000);
    expect(breaker.state).toBe('open');
    expect(breaker.beginTrial(3_999)).toBe(false);
    expect(breaker.beginTrial(4_000)).toBe(true);
  });

  test('opens at the third failure in a row, and the trial is due at once', () => {
    const breaker = closed();
    breaker.failed();
    breaker.failed();
    breaker.succeeded();
    breaker.failed();
    breaker.failed();
    expect(breaker.state).toBe('closed');
    breaker.failed();
    expect(breaker.state).toBe('open');
    expect(breaker.beginTrial(0)).toBe(true);
  });

  test('waits from 1 to 30 seconds after failed trials, twice as long each time, and forgets that after a good one', () => {
    const breaker = new CircuitBreaker();
    let now_ms = 0;
    const rests_ms: number[] = [];
    for (let trial = 0; trial < 7; trial++) {
      expect(breaker.beginTrial(now_ms)).toBe(true);
      breaker.trialFailed(now_ms);
      const failed_ms = now_ms;
      while (!breaker.beginTrial(now_ms)) now_ms += 500;
      rests_ms.push(now_ms - failed_ms);
      breaker.trialFailed(now_ms, 0);
    }
    expect(rests_ms).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    breaker.beginTrial(now_ms);
    breaker.trialSucceeded();
    for (let failure = 0; failure < 3; failure++) breaker.failed();
    breaker.beginTrial(now_ms);
    breaker.trialFailed(now_ms);
    expect(breaker.beginTrial(now_ms + 999)).toBe(false);
    expect(breaker.beginTrial(now_ms + 1_000)).toBe(true);
  });

  test('a member that says how long it will take is tried again after that, and later failures wait no longer for it', () => {
    const breaker = new CircuitBreaker();
    breaker.beginTrial(0);
    breaker.trialFailed(0, 7_000);
    expect(breaker.beginTrial(6_999)).toBe(false);
    expect(breaker.beginTrial(7_000)).toBe(true);
    breaker.trialFailed(7_000);
    expect(breaker.beginTrial(8_000)).toBe(true);
  });

  test('that distrusts its member has its trial due at once, and has forgotten failures and rests', () => {
    const breaker = closed();
    breaker.failed();
    breaker.failed();
    breaker.distrust();
    expect(breaker.state).toBe('open');
    expect(breaker.beginTrial(0)).toBe(true);
    breaker.distrust();
    expect(breaker.state).toBe('half_open');
    breaker.trialFailed(0);
    breaker.distrust();
    expect(breaker.beginTrial(0)).toBe(true);
    breaker.trialFailed(0);
    expect(breaker.beginTrial(999)).toBe(false);
    expect(breaker.beginTrial(1_000)).toBe(true);
    breaker.trialSucceeded();
    breaker.failed();
    breaker.failed();
    expect(breaker.state).toBe('closed');
  });

  test('only a trial closes it, whatever requests that were sent before come to', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('failed', 'succeeded')), (late) => {
        const breaker = closed();
        for (let failure = 0; failure < 3; failure++) breaker.failed();
        for (const outcome of late) breaker[outcome]();
        expect(breaker.state).toBe('open');
        expect(breaker.beginTrial(0)).toBe(true);
        for (const outcome of late) breaker[outcome]();
        expect(breaker.state).toBe('half_open');
      }),
    );
  });
});
