import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { LocalRateWindows, RateLimiter } from '../../src/limits/local-rate-windows.ts';
import type { RateWindows } from '../../src/limits/rate-windows.ts';
import { MovableClock } from '../support/clock.ts';
import { isPostgresMissing, type TestDatabase, testDatabase } from '../support/postgres.ts';
import { nodeWindows } from '../support/rate-windows.ts';

const LIMITS = { requests_per_minute: 3, tokens_per_minute: 1_000 };

interface Opened {
  /** One of those who share the windows, in turn: nodes of a database, or the one process. */
  readonly windows: () => RateWindows;
  readonly clock: MovableClock;
  /** An organization that nobody has used. */
  readonly organization: string;
}

let organizations = 0;

/** The same rules, whoever keeps the windows. */
function conforms(open: () => Omit<Opened, 'organization'>): void {
  const opened = (): Opened => {
    organizations += 1;
    return { ...open(), organization: `org_${organizations}` };
  };

  test('a request leaves the window exactly 60 seconds after it was made', async () => {
    const { windows, clock, organization } = opened();
    for (let count = 0; count < 3; count += 1) {
      expect((await windows().admit(organization, LIMITS, 1)).admitted).toBe(true);
      clock.advance(10_000);
    }
    clock.advance(29_999);
    expect(await windows().admit(organization, LIMITS, 1)).toMatchObject({
      admitted: false,
      limit: 'requests',
      retry_after_s: 1,
      status: { limit_requests: 3, remaining_requests: 0, reset_requests_s: 1 },
    });
    clock.advance(1);
    expect((await windows().admit(organization, LIMITS, 1)).admitted).toBe(true);
    expect(await windows().admit(organization, LIMITS, 1)).toMatchObject({
      admitted: false,
      retry_after_s: 10,
    });
  });

  test('a request refused for requests counts nowhere, and one refused for tokens counts as a request', async () => {
    const { windows, clock, organization } = opened();
    await windows().admit(organization, LIMITS, 900);
    clock.advance(1_000);
    expect(await windows().admit(organization, LIMITS, 200)).toMatchObject({
      admitted: false,
      limit: 'tokens',
      retry_after_s: 59,
      status: { remaining_requests: 1, remaining_tokens: 100 },
    });
    await windows().admit(organization, LIMITS, 1);
    for (let count = 0; count < 5; count += 1)
      expect(await windows().admit(organization, LIMITS, 1)).toMatchObject({ limit: 'requests' });
    clock.advance(60_000);
    expect(await windows().admit(organization, LIMITS, 1)).toMatchObject({
      admitted: true,
      status: { remaining_requests: 2, remaining_tokens: 999 },
    });
  });

  test('a request larger than the whole allowance runs when the window is empty, and fills it', async () => {
    const { windows, clock, organization } = opened();
    expect(await windows().admit(organization, LIMITS, 5_000)).toMatchObject({
      admitted: true,
      status: { remaining_tokens: 0 },
    });
    clock.advance(59_999);
    expect(await windows().admit(organization, LIMITS, 1)).toMatchObject({ limit: 'tokens' });
    clock.advance(1);
    expect((await windows().admit(organization, LIMITS, 5_000)).admitted).toBe(true);
  });

  test('a request without tokens is admitted, and counted, however many tokens are used', async () => {
    const { windows, organization } = opened();
    await windows().admit(organization, LIMITS, 2 * LIMITS.tokens_per_minute);
    expect(await windows().admit(organization, LIMITS, 0)).toMatchObject({
      admitted: true,
      status: { remaining_requests: 1, remaining_tokens: 0 },
    });
  });

  test('a refusal for tokens says when the oldest request leaves that has some', async () => {
    const { windows, clock, organization } = opened();
    const failed = await windows().admit(organization, LIMITS, 900);
    if (failed.admitted) await failed.reservation.settle(0);
    clock.advance(10_000);
    const free = await windows().admit(organization, LIMITS, 0);
    clock.advance(10_000);
    await windows().admit(organization, { ...LIMITS, requests_per_minute: 9 }, 900);
    clock.advance(10_000);
    const refuse = () => windows().admit(organization, { ...LIMITS, requests_per_minute: 9 }, 200);
    expect(await refuse()).toMatchObject({ limit: 'tokens', retry_after_s: 50 });
    if (free.admitted) await free.reservation.settle(50);
    expect(await refuse()).toMatchObject({ limit: 'tokens', retry_after_s: 40 });
    clock.advance(40_000);
    expect(await refuse()).toMatchObject({ limit: 'tokens', retry_after_s: 10 });
  });

  test('what was billed takes the place of the estimate, unless the entry has left', async () => {
    const { windows, clock, organization } = opened();
    const billed = await windows().admit(organization, LIMITS, 900);
    if (billed.admitted) await billed.reservation.settle(300);
    const failed = await windows().admit(organization, LIMITS, 700);
    expect(failed.status.remaining_tokens).toBe(0);
    if (failed.admitted) await failed.reservation.settle(0);
    expect((await windows().status(organization, LIMITS)).remaining_tokens).toBe(700);
    const late = await windows().admit(organization, LIMITS, 700);
    clock.advance(60_000);
    await windows().admit(organization, LIMITS, 100);
    if (late.admitted) await late.reservation.settle(800);
    expect((await windows().status(organization, LIMITS)).remaining_tokens).toBe(900);
  });

  test('a settlement that nobody waits for counts before the next admission of its process', async () => {
    const { windows, organization } = opened();
    const one = windows();
    const first = await one.admit(organization, LIMITS, 1_000);
    if (first.admitted) void first.reservation.settle(0);
    expect((await one.admit(organization, LIMITS, 1_000)).admitted).toBe(true);
  });

  test('exhausted is the refusal that admit gave, until the oldest request leaves', async () => {
    const { windows, clock, organization } = opened();
    const one = windows();
    expect(await one.exhausted(organization, LIMITS)).toBeNull();
    for (let count = 0; count < 3; count += 1) await one.admit(organization, LIMITS, 1);
    clock.advance(1_500);
    const refused = await one.admit(organization, LIMITS, 1);
    expect(refused.admitted).toBe(false);
    clock.advance(10_000);
    expect(await one.exhausted(organization, LIMITS)).toEqual({
      admitted: false,
      limit: 'requests',
      retry_after_s: 49,
      status: { ...refused.status, reset_requests_s: 49, reset_tokens_s: 49 },
    });
    expect(await one.exhausted(organization, { ...LIMITS, requests_per_minute: 4 })).toBeNull();
    clock.advance(48_500);
    expect(await one.exhausted(organization, LIMITS)).toBeNull();
    expect((await one.admit(organization, LIMITS, 1)).admitted).toBe(true);
  });

  test('asking where an organization stands counts nothing', async () => {
    const { windows, clock, organization } = opened();
    const empty = {
      limit_requests: 3,
      remaining_requests: 3,
      reset_requests_s: 1,
      limit_tokens: 1_000,
      remaining_tokens: 1_000,
      reset_tokens_s: 1,
    };
    expect(await windows().status(organization, LIMITS)).toEqual(empty);
    await windows().admit(organization, LIMITS, 400);
    clock.advance(17_500);
    const used = {
      ...empty,
      remaining_requests: 2,
      reset_requests_s: 43,
      remaining_tokens: 600,
      reset_tokens_s: 43,
    };
    const one = windows();
    expect(await Promise.all([one.status(organization, LIMITS), one.status(organization, LIMITS)])).toEqual([
      used,
      used,
    ]);
    expect(await windows().status(organization, { requests_per_minute: 1, tokens_per_minute: 100 })).toEqual({
      ...used,
      limit_requests: 1,
      remaining_requests: 0,
      limit_tokens: 100,
      remaining_tokens: 0,
    });
  });

  test('of a limit that was lowered below what is used nothing remains, never less', async () => {
    const { windows, organization } = opened();
    for (let count = 0; count < 3; count += 1) await windows().admit(organization, LIMITS, 400);
    const lowered = { requests_per_minute: 2, tokens_per_minute: 500 };
    expect(await windows().status(organization, lowered)).toMatchObject({
      remaining_requests: 0,
      remaining_tokens: 0,
    });
  });

  test('organizations do not share windows, and forgetting idle ones forgets nothing that counts', async () => {
    const { windows, clock, organization } = opened();
    for (let count = 0; count < 3; count += 1) await windows().admit(organization, LIMITS, 100);
    clock.advance(59_999);
    await windows().forgetIdle();
    expect((await windows().admit(organization, LIMITS, 1)).admitted).toBe(false);
    expect((await windows().admit(`${organization}_other`, LIMITS, 1)).admitted).toBe(true);
    clock.advance(1);
    await windows().forgetIdle();
    expect((await windows().status(organization, LIMITS)).remaining_tokens).toBe(1_000);
    expect((await windows().status(`${organization}_other`, LIMITS)).remaining_tokens).toBe(999);
  });
}

describe('windows in the memory of one process', () => {
  conforms(() => {
    const clock = MovableClock.stopped();
    const windows = new LocalRateWindows(new RateLimiter(), clock);
    return { windows: () => windows, clock };
  });
});

describe.skipIf(isPostgresMissing())('windows of two nodes on PostgreSQL', () => {
  const clock = MovableClock.stopped();
  let database: TestDatabase;
  let nodes: readonly RateWindows[] = [];
  let close = () => Promise.resolve();
  let turn = 0;
  beforeAll(async () => {
    database = await testDatabase();
    const [one, other] = [nodeWindows(database, clock), nodeWindows(database, clock)];
    nodes = [one, other];
    close = async () => {
      await one.close();
      await other.close();
    };
  });
  afterAll(async () => {
    await close();
    await database[Symbol.asyncDispose]();
  });

  conforms(() => ({
    windows: () => {
      turn += 1;
      const node = nodes[turn % nodes.length];
      if (node === undefined) throw new Error('there is no node');
      return node;
    },
    clock,
  }));
});
