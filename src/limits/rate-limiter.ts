import { SlidingWindow, type WindowEntry } from './sliding-window.ts';

/** Both windows slide over this span (contract: rate limits). */
export const WINDOW_MS = 60_000;

/** What an organization may use in any 60 seconds. */
export interface RateLimits {
  readonly requests_per_minute: number;
  readonly tokens_per_minute: number;
}

/** Where an organization stands, as the `x-ratelimit-*` headers say it. */
export interface RateStatus {
  readonly limit_requests: number;
  readonly remaining_requests: number;
  /** Whole seconds until a request slot frees. */
  readonly reset_requests_s: number;
  readonly limit_tokens: number;
  readonly remaining_tokens: number;
}

/** A request's place in the token window, to be settled with what was billed, or given back. */
export interface TokenReservation {
  readonly organization_id: string;
  readonly entry: WindowEntry;
}

/** A limit that is reached. */
export interface RateRefusal {
  readonly admitted: false;
  readonly limit: 'requests' | 'tokens';
  /** Whole seconds until the oldest request leaves the window that is full; at least 1. */
  readonly retry_after_s: number;
  readonly status: RateStatus;
}

export type Admission =
  | { readonly admitted: true; readonly reservation: TokenReservation; readonly status: RateStatus }
  | RateRefusal;

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
   * The refusal when the organization has no request left now, or null. Lets a caller refuse without working out the
   * tokens; nothing is counted by it.
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

  /**
   * Checks both limits together. A request that passes is counted with its estimated tokens. One that only lacks
   * tokens counts as a request all the same; one that lacks requests counts nowhere. A request that needs more than
   * the whole token allowance runs when the window is empty, and then fills it.
   */
  admit(organization_id: string, limits: RateLimits, estimated_tokens: number, now_ms: number): Admission {
    const exhausted = this.requestsExhausted(organization_id, limits, now_ms);
    if (exhausted !== null) return exhausted;
    const windows = this.#of(organization_id);
    windows.requests.add(now_ms, 1);
    const used_tokens = windows.tokens.total(now_ms);
    const fits = used_tokens === 0 || used_tokens + estimated_tokens <= limits.tokens_per_minute;
    if (!fits) {
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
      reservation: { organization_id, entry },
      status: statusOf(windows, limits, now_ms),
    };
  }

  /** Where the organization stands; nothing is counted by it. */
  status(organization_id: string, limits: RateLimits, now_ms: number): RateStatus {
    return statusOf(this.#of(organization_id), limits, now_ms);
  }

  /** Puts what was really billed in the place of the estimate; 0 for a request that failed or was refused. */
  settle(reservation: TokenReservation, billed_tokens: number): void {
    this.#windows.get(reservation.organization_id)?.tokens.correct(reservation.entry, billed_tokens);
  }

  /**
   * Counts a request of before a restart, made `age_ms` ago. Must be called oldest first, before any other request is
   * admitted.
   */
  restore(organization_id: string, age_ms: number, tokens: number, now_ms: number): void {
    if (age_ms >= WINDOW_MS) return;
    const at_ms = now_ms - age_ms;
    const windows = this.#of(organization_id);
    windows.requests.add(at_ms, 1);
    if (tokens > 0) windows.tokens.add(at_ms, tokens);
  }

  /** Drops the windows that have become empty, so that organizations gone quiet take no memory. */
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
  });
}

/** What is in both windows, and milliseconds until the oldest request leaves; 0 where there is none. */
export interface WindowSums {
  readonly requests: number;
  readonly tokens: number;
  readonly requests_leave_ms: number;
}

/** Where an organization with these limits stands. */
export function rateStatus(limits: RateLimits, sums: WindowSums): RateStatus {
  return {
    limit_requests: limits.requests_per_minute,
    remaining_requests: Math.max(0, limits.requests_per_minute - sums.requests),
    reset_requests_s: wholeSeconds(sums.requests_leave_ms),
    limit_tokens: limits.tokens_per_minute,
    remaining_tokens: Math.max(0, limits.tokens_per_minute - sums.tokens),
  };
}

/** At least one second, because a client told to wait zero would come back at once. */
export function wholeSeconds(duration_ms: number): number {
  return Math.max(1, Math.ceil(duration_ms / 1_000));
}
