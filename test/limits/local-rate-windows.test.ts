import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { RateLimiter } from '../../src/limits/local-rate-windows.ts';
import { WINDOW_MS } from '../../src/limits/rate-status.ts';
import { propertySeed } from '../ledger/support.ts';

const ORGANIZATION = 'org_1';
const LIMITS = { requests_per_minute: 3, tokens_per_minute: 1_000 };

describe('requests per minute', () => {
  test('a request leaves the window exactly 60 seconds after it was made', () => {
    const limiter = new RateLimiter();
    for (const at_ms of [0, 10_000, 20_000])
      expect(limiter.admit(ORGANIZATION, LIMITS, 1, at_ms).admitted).toBe(true);
    const refused = limiter.admit(ORGANIZATION, LIMITS, 1, 59_999);
    expect(refused).toMatchObject({ admitted: false, limit: 'requests', retry_after_s: 1 });
    expect(limiter.admit(ORGANIZATION, LIMITS, 1, 60_000).admitted).toBe(true);
    expect(limiter.admit(ORGANIZATION, LIMITS, 1, 60_000).admitted).toBe(false);
    expect(limiter.admit(ORGANIZATION, LIMITS, 1, 70_000).admitted).toBe(true);
  });

  test('a request refused for requests counts nowhere', () => {
    const limiter = new RateLimiter();
    for (let count = 0; count < 3; count += 1) limiter.admit(ORGANIZATION, LIMITS, 1, 0);
    for (let count = 0; count < 5; count += 1) limiter.admit(ORGANIZATION, LIMITS, 1, 30_000);
    const admitted = limiter.admit(ORGANIZATION, LIMITS, 1, 60_000);
    expect(admitted.admitted).toBe(true);
    expect(admitted.status.remaining_requests).toBe(2);
  });

  test('a request refused for tokens counts as a request', () => {
    const limiter = new RateLimiter();
    limiter.admit(ORGANIZATION, LIMITS, 900, 0);
    const refused = limiter.admit(ORGANIZATION, LIMITS, 200, 1_000);
    expect(refused).toMatchObject({ admitted: false, limit: 'tokens', retry_after_s: 59 });
    expect(refused.status.remaining_requests).toBe(1);
  });

  test('organizations do not share windows', () => {
    const limiter = new RateLimiter();
    for (let count = 0; count < 3; count += 1) limiter.admit(ORGANIZATION, LIMITS, 1, 0);
    expect(limiter.admit('org_2', LIMITS, 1, 0).admitted).toBe(true);
  });

  test('the reset is the time until the oldest request leaves, in whole seconds', () => {
    const limiter = new RateLimiter();
    limiter.admit(ORGANIZATION, LIMITS, 1, 0);
    const second = limiter.admit(ORGANIZATION, LIMITS, 1, 17_500);
    expect(second.status.reset_requests_s).toBe(43);
  });

  test('the reset is never more than a window, whatever fractions the clock has', () => {
    fc.assert(
      fc.property(fc.nat({ max: 1e9 }), (now_us) => {
        const now_ms = now_us / 1_000;
        const { status } = new RateLimiter().admit(ORGANIZATION, LIMITS, 1, now_ms);
        expect([status.reset_requests_s, status.reset_tokens_s]).toEqual([60, 60]);
      }),
      { seed: propertySeed('rate limiter') },
    );
  });
});

describe('tokens per minute', () => {
  test('the reset is the time until the oldest tokens leave: not those of a request that failed', () => {
    const limiter = new RateLimiter();
    const failed = limiter.admit(ORGANIZATION, LIMITS, 100, 0);
    expect(failed.status.reset_tokens_s).toBe(60);
    expect(limiter.admit(ORGANIZATION, LIMITS, 100, 17_500).status.reset_tokens_s).toBe(43);
    if (failed.admitted) limiter.settle(ORGANIZATION, failed.entry, 0);
    expect(limiter.admit(ORGANIZATION, LIMITS, 100, 20_000).status.reset_tokens_s).toBe(58);
  });

  test('after completion the window holds the billed tokens', () => {
    const limiter = new RateLimiter();
    const first = limiter.admit(ORGANIZATION, LIMITS, 900, 0);
    expect(first.status.remaining_tokens).toBe(100);
    if (first.admitted) limiter.settle(ORGANIZATION, first.entry, 300);
    expect(limiter.admit(ORGANIZATION, LIMITS, 700, 0).status.remaining_tokens).toBe(0);
  });

  test('a failed request gives its tokens back', () => {
    const limiter = new RateLimiter();
    const first = limiter.admit(ORGANIZATION, LIMITS, 1_000, 0);
    if (first.admitted) limiter.settle(ORGANIZATION, first.entry, 0);
    expect(limiter.admit(ORGANIZATION, LIMITS, 1_000, 0).admitted).toBe(true);
  });

  test('a request larger than the whole allowance runs when the window is empty, then fills it', () => {
    const limiter = new RateLimiter();
    const large = limiter.admit(ORGANIZATION, LIMITS, 5_000, 0);
    expect(large).toMatchObject({ admitted: true, status: { remaining_tokens: 0 } });
    expect(limiter.admit(ORGANIZATION, LIMITS, 1, 59_999)).toMatchObject({
      admitted: false,
      limit: 'tokens',
    });
    expect(limiter.admit(ORGANIZATION, LIMITS, 5_000, 60_000).admitted).toBe(true);
  });

  test('settling after the entry has left changes nothing', () => {
    const limiter = new RateLimiter();
    const slow = limiter.admit(ORGANIZATION, LIMITS, 900, 0);
    limiter.admit(ORGANIZATION, LIMITS, 100, 60_000);
    if (slow.admitted) limiter.settle(ORGANIZATION, slow.entry, 800);
    expect(limiter.admit(ORGANIZATION, LIMITS, 900, 60_000).status.remaining_tokens).toBe(0);
  });
});

describe('restart', () => {
  test('restored requests leave when they would have left', () => {
    const limiter = new RateLimiter();
    limiter.restore(ORGANIZATION, 90_000, 500, 1_000_000);
    limiter.restore(ORGANIZATION, 45_000, 500, 1_000_000);
    limiter.restore(ORGANIZATION, 0, 500, 1_000_000);
    const now = limiter.admit(ORGANIZATION, LIMITS, 1, 1_000_000);
    expect(now).toMatchObject({ admitted: false, limit: 'tokens', retry_after_s: 15 });
    expect(limiter.admit(ORGANIZATION, LIMITS, 1, 1_015_000).admitted).toBe(true);
    expect(limiter.admit(ORGANIZATION, LIMITS, 900, 1_060_000).admitted).toBe(true);
  });
});

test('no 60 seconds ever hold more requests or tokens than allowed, and nothing is refused that fits', () => {
  const step = fc.record({
    wait_ms: fc.integer({ min: 0, max: 30_000 }),
    estimate: fc.integer({ min: 1, max: 600 }),
    billed_share: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const limiter = new RateLimiter();
      const requests: number[] = [];
      const tokens: { at_ms: number; amount: number }[] = [];
      let now_ms = 0;
      for (const { wait_ms, estimate, billed_share } of steps) {
        now_ms += wait_ms;
        const requestsNow = requests.filter((at_ms) => now_ms - at_ms < WINDOW_MS).length;
        const tokensNow = tokens
          .filter(({ at_ms }) => now_ms - at_ms < WINDOW_MS)
          .reduce((sum, { amount }) => sum + amount, 0);
        const admission = limiter.admit(ORGANIZATION, LIMITS, estimate, now_ms);
        const hasRequest = requestsNow < LIMITS.requests_per_minute;
        const hasTokens = tokensNow === 0 || tokensNow + estimate <= LIMITS.tokens_per_minute;
        expect(admission.admitted).toBe(hasRequest && hasTokens);
        if (hasRequest) requests.push(now_ms);
        if (!admission.admitted) continue;
        const billed = Math.floor(estimate * billed_share);
        limiter.settle(ORGANIZATION, admission.entry, billed);
        tokens.push({ at_ms: now_ms, amount: billed });
      }
    }),
    { numRuns: 500, verbose: 1 },
  );
});
