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
  /** Whole seconds until tokens free. */
  readonly reset_tokens_s: number;
}

/** A limit that is reached. */
export interface RateRefusal {
  readonly admitted: false;
  readonly limit: 'requests' | 'tokens';
  /** Whole seconds until the oldest request leaves the window that is full; at least 1. */
  readonly retry_after_s: number;
  readonly status: RateStatus;
}

/** What is in both windows, and milliseconds until the oldest entry of each leaves; 0 where there is none. */
export interface WindowSums {
  readonly requests: number;
  readonly tokens: number;
  readonly requests_leave_ms: number;
  readonly tokens_leave_ms: number;
}

/** Where an organization with these limits stands. */
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

/** At least one second, because a client told to wait zero would come back at once. */
export function wholeSeconds(duration_ms: number): number {
  return Math.max(1, Math.ceil(duration_ms / 1_000));
}
