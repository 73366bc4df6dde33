/** The span of both sliding windows (contract: rate limits). */
export const WINDOW_MS = 60_000;

/** The limits of an organization in any 60 seconds. */
export interface RateLimits {
  readonly requests_per_minute: number;
  readonly tokens_per_minute: number;
}

/** The status of an organization, as in the `x-ratelimit-*` headers. */
export interface RateStatus {
  readonly limit_requests: number;
  readonly remaining_requests: number;
  /** Whole seconds until a request slot frees. */
  readonly reset_requests_s: number;
  readonly limit_tokens: number;
  readonly remaining_tokens: number;
  /** Whole seconds until tokens free. */
  readonly reset_tokens_s: number;
}

/** The refusal by a reached limit. */
export interface RateRefusal {
  readonly admitted: false;
  readonly limit: 'requests' | 'tokens';
  /** Whole seconds until the oldest request leaves the full window; at least 1. */
  readonly retry_after_s: number;
  readonly status: RateStatus;
}

/**
 * The sums of both windows, and the milliseconds until the oldest entry of each leaves; 0 where there is
 * none.
 */
export interface WindowSums {
  readonly requests: number;
  readonly tokens: number;
  readonly requests_leave_ms: number;
  readonly tokens_leave_ms: number;
}

/** Returns the status of an organization with these limits. */
export function rateStatus(limits: RateLimits, sums: WindowSums): RateStatus {
  return {
    limit_requests: limits.requests_per_minute,
    remaining_requests: Math.max(0, limits.requests_per_minute - sums.requests),
    reset_requests_s: wholeSeconds(sums.requests_leave_ms),
    limit_tokens: limits.tokens_per_minute,
    remaining_tokens: Math.max(0, limits.tokens_per_minute - sums.tokens),
    reset_tokens_s: wholeSeconds(sums.tokens_leave_ms),
  };
}

/**
 * Returns at least one second, because a client told to wait 0 would come back at once. Nanoseconds do not count: a sum
 * of fractions is a little more than 60 seconds.
 */
export function wholeSeconds(duration_ms: number): number {
  return Math.max(1, Math.ceil(Math.round(duration_ms * 1_000) / 1_000_000));
}
