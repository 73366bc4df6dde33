import type { Clock } from '../time/clock.ts';
import {
  type RateLimits,
  type RateRefusal,
  type RateStatus,
  rateStatus,
  WINDOW_MS,
  wholeSeconds,
} from './rate-status.ts';
import type { Admission, RateWindows, TokenReservation } from './rate-windows.ts';
import { SlidingWindow, type WindowEntry } from './sliding-window.ts';

/** A counted request, with its entry in the token window for `settle`. */
interface Admitted {
  readonly admitted: true;
  readonly entry: WindowEntry;
  readonly status: RateStatus;
}

interface Windows {
  readonly requests: SlidingWindow;
  readonly tokens: SlidingWindow;
}

/**
 * Requests and tokens per minute of every organization, as exact sliding windows (contract: rate limits). Pure: the
 * caller gives the time, from a clock that never goes back.
 */
export class RateLimiter {
  readonly #windows = new Map<string, Windows>();

  /**
   * Returns the refusal when the organization has no request left now, or null. It counts nothing, so that a
   * caller can refuse without counting tokens.
   */
  requestsExhausted(organization_id: string, limits: RateLimits, now_ms: number): RateRefusal | null {
    const windows = this.#of(organization_id);
    if (windows.requests.total(now_ms) < limits.requests_per_minute) return null;
    return {
      admitted: false,
      limit: 'requests',
      retry_after_s: wholeSeconds(windows.requests.untilOldestLeaves_ms(now_ms)),
      status: statusOf(windows, limits, now_ms),
    };
  }

  /** Does as `RateWindows.admit`. */
  admit(
    organization_id: string,
    limits: RateLimits,
    estimated_tokens: number,
    now_ms: number,
  ): Admitted | RateRefusal {
    const exhausted = this.requestsExhausted(organization_id, limits, now_ms);
    if (exhausted !== null) return exhausted;
    const windows = this.#of(organization_id);
    windows.requests.add(now_ms, 1);
    const used_tokens = windows.tokens.total(now_ms);
    const fits = used_tokens === 0 || used_tokens + estimated_tokens <= limits.tokens_per_minute;
    if (!fits && estimated_tokens > 0) {
      return {
        admitted: false,
        limit: 'tokens',
        retry_after_s: wholeSeconds(windows.tokens.untilOldestLeaves_ms(now_ms)),
        status: statusOf(windows, limits, now_ms),
      };
    }
    const entry = windows.tokens.add(now_ms, estimated_tokens);
    return {
      admitted: true,
      entry,
      status: statusOf(windows, limits, now_ms),
    };
  }

  /** Returns the organization's status; counts nothing. */
  status(organization_id: string, limits: RateLimits, now_ms: number): RateStatus {
    return statusOf(this.#of(organization_id), limits, now_ms);
  }

  /** Replaces the entry's estimate by the billed tokens; 0 for a request that failed or was refused. */
  settle(organization_id: string, entry: WindowEntry, billed_tokens: number): void {
    this.#windows.get(organization_id)?.tokens.correct(entry, billed_tokens);
  }

  /**
   * Counts a request from before a restart, made `age_ms` ago. Must be called oldest first, before any other
   * request is admitted.
   */
  restore(organization_id: string, age_ms: number, tokens: number, now_ms: number): void {
    if (age_ms >= WINDOW_MS) return;
    const at_ms = now_ms - age_ms;
    const windows = this.#of(organization_id);
    windows.requests.add(at_ms, 1);
    if (tokens > 0) windows.tokens.add(at_ms, tokens);
  }

  /** Drops empty windows, so that idle organizations take no memory. */
  forgetIdle(now_ms: number): void {
    for (const [organization_id, windows] of this.#windows) {
      if (windows.requests.total(now_ms) === 0 && windows.tokens.total(now_ms) === 0) {
        this.#windows.delete(organization_id);
      }
    }
  }

  #of(organization_id: string): Windows {
    const existing = this.#windows.get(organization_id);
    if (existing !== undefined) return existing;
    const created = { requests: new SlidingWindow(WINDOW_MS), tokens: new SlidingWindow(WINDOW_MS) };
    this.#windows.set(organization_id, created);
    return created;
  }
}

function statusOf({ requests, tokens }: Windows, limits: RateLimits, now_ms: number): RateStatus {
  return rateStatus(limits, {
    requests: requests.total(now_ms),
    tokens: tokens.total(now_ms),
    requests_leave_ms: requests.untilOldestLeaves_ms(now_ms),
    tokens_leave_ms: tokens.untilOldestLeaves_ms(now_ms),
  });
}

/** The windows of one process, in its memory. Each call decides and counts before it returns its promise. */
export class LocalRateWindows implements RateWindows {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly clock: Pick<Clock, 'monotonic_ms'>,
  ) {}

  exhausted(organization_id: string, limits: RateLimits): Promise<RateRefusal | null> {
    const now_ms = this.clock.monotonic_ms();
    return Promise.resolve(this.limiter.requestsExhausted(organization_id, limits, now_ms));
  }

  admit(organization_id: string, limits: RateLimits, estimated_tokens: number): Promise<Admission> {
    const { limiter, clock } = this;
    const admission = limiter.admit(organization_id, limits, estimated_tokens, clock.monotonic_ms());
    if (!admission.admitted) return Promise.resolve(admission);
    const { entry, status } = admission;
    const reservation = new LocalReservation(limiter, organization_id, entry);
    return Promise.resolve({ admitted: true, reservation, status });
  }

  status(organization_id: string, limits: RateLimits): Promise<RateStatus> {
    return Promise.resolve(this.limiter.status(organization_id, limits, this.clock.monotonic_ms()));
  }

  forgetIdle(): Promise<void> {
    this.limiter.forgetIdle(this.clock.monotonic_ms());
    return Promise.resolve();
  }
}

class LocalReservation implements TokenReservation {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly organization_id: string,
    private readonly entry: WindowEntry,
  ) {}

  settle(billed_tokens: number): Promise<void> {
    this.limiter.settle(this.organization_id, this.entry, billed_tokens);
    return Promise.resolve();
  }
}
