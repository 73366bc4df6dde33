import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { TierLimits } from '../../src/contract/tiers.ts';
import { admitInTime } from '../../src/decisions/batch/admission.ts';
import { LocalRateWindows, RateLimiter } from '../../src/limits/local-rate-windows.ts';
import { propertySeed } from '../ledger/support.ts';
import { MovableClock } from '../support/clock.ts';

/** Windows of one organization, whose pauses move the clock. In the middle of each comes a single request, if any. */
function windows(
  limits: Pick<TierLimits, 'requests_per_minute' | 'tokens_per_minute'>,
  tokens_between: number | null = null,
) {
  const clock = MovableClock.stopped();
  const limiter = new LocalRateWindows(new RateLimiter(), clock);
  const pauses: number[] = [];
  const all_limits = { ...limits, questions_per_request: 32 };
  const single = (tokens: number) => limiter.admit('org', all_limits, tokens);
  const pause = async (duration_ms: number) => {
    pauses.push(duration_ms);
    clock.advance(duration_ms / 2);
    if (tokens_between !== null) await single(tokens_between);
    clock.advance(duration_ms / 2);
  };
  const patience = new AbortController();
  return {
    clock,
    pauses,
    patience,
    single,
    status: () => limiter.status('org', all_limits),
    line: (estimated_tokens: number) =>
      admitInTime(
        { limiter, pause, clock },
        {
          limitsNow: () => Promise.resolve(all_limits),
          organization_id: 'org',
          estimated_tokens,
          patience: patience.signal,
        },
      ),
  };
}

test('a line waits where it would leave less than a tenth of either window', async () => {
  const { line, pauses, status } = windows({ requests_per_minute: 100, tokens_per_minute: 100 });
  await line(50);
  await line(40);
  expect(pauses).toEqual([]);
  await line(1);
  expect(pauses).toEqual([60_000]);
  expect(await status()).toMatchObject({ remaining_requests: 99, remaining_tokens: 99 });

  const few = windows({ requests_per_minute: 10, tokens_per_minute: 1_000_000 });
  for (let count = 0; count < 9; count += 1) await few.line(1);
  expect(few.pauses).toEqual([]);
  await few.line(1);
  expect(few.pauses).toHaveLength(1);
});

test('whatever else the organization asks, each line is admitted once, within what batches may use', async () => {
  const kinds = fc.record({
    is_line: fc.boolean(),
    tokens: fc.integer({ min: 1, max: 150 }),
    after_ms: fc.nat(9_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(kinds, { maxLength: 60 }), async (requests) => {
      const { clock, line, single, status } = windows({ requests_per_minute: 20, tokens_per_minute: 300 });
      for (const { is_line, tokens, after_ms } of requests) {
        clock.advance(after_ms);
        if (!is_line) {
          await single(tokens);
          continue;
        }
        expect(await line(tokens)).toMatchObject({ admitted: true });
        const { remaining_requests, remaining_tokens } = await status();
        expect(remaining_requests).toBeGreaterThanOrEqual(2);
        expect(remaining_tokens).toBeGreaterThanOrEqual(30);
      }
    }),
    { seed: propertySeed('admission of batches') },
  );
});

const HUNDRED = { requests_per_minute: 100, tokens_per_minute: 100 };

test('a line of more than nine tenths of the tokens is admitted as soon as they are there', async () => {
  const large = windows(HUNDRED);
  await large.single(5);
  expect(await large.line(95)).toMatchObject({ admitted: true });
  expect(large.pauses).toEqual([]);
  // Smaller ones leave the tenth to single requests.
  const smaller = windows(HUNDRED);
  await smaller.single(5);
  expect(await smaller.line(90)).toMatchObject({ admitted: true });
  expect(smaller.pauses).toEqual([60_000]);
});

test.each([95, 200])(
  'a line of %d of 100 tokens, where single requests leave no room, waits for one to two minutes',
  async (tokens) => {
    const { clock, single, line } = windows(HUNDRED, 20);
    await single(20);
    const began_ms = clock.monotonic_ms();
    expect(await line(tokens)).toMatchObject({ code: 'rate_limit_exceeded' });
    expect(clock.monotonic_ms() - began_ms).toBeGreaterThanOrEqual(60_000);
    expect(clock.monotonic_ms() - began_ms).toBeLessThanOrEqual(120_000);
  },
);

test('a line that costs nothing waits for no tokens', async () => {
  const { line, single, pauses } = windows(HUNDRED);
  await single(200);
  expect(await line(0)).toMatchObject({ admitted: true });
  expect(pauses).toEqual([]);
});

test('a line that is to wait no longer is not admitted', async () => {
  const { line, single, patience, status } = windows({ requests_per_minute: 10, tokens_per_minute: 100 });
  for (let count = 0; count < 10; count += 1) await single(1);
  patience.abort();
  expect(await line(1)).toBeNull();
  expect(await status()).toMatchObject({ remaining_requests: 0 });
});
