import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { RateLimiter } from '../../src/limits/local-rate-windows.ts';
import { WINDOW_MS } from '../../src/limits/rate-status.ts';
import { SlidingWindow } from '../../src/limits/sliding-window.ts';
import { propertySeed } from '../ledger/support.ts';

const ORGANIZATION = 'org_1';
const LIMITS = { requests_per_minute: 3, tokens_per_minute: 1_000 };

describe('requests per minute', () => {
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
});

test('entries that leave in bulk leave once', () => {
  const window = new SlidingWindow(WINDOW_MS);
  for (let at_ms = 0; at_ms < 1_100; at_ms += 1) window.add(at_ms, 1);
  window.add(70_000, 1);
  expect([window.total(70_000), window.total(70_001)]).toEqual([1, 1]);
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
