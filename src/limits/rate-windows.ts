import type { RateLimits, RateRefusal, RateStatus } from './rate-status.ts';

/** An admitted request's entry in the token window. */
export interface TokenReservation {
  /**
   * Replaces the estimate by the billed tokens; 0 for a request that failed or was refused. May be called
   * once. Later admissions of this process see the change. Never rejects: where the windows cannot be
   * reached, the estimate stays.
   */
  settle(billed_tokens: number): Promise<void>;
}

/** An admitted and counted request. */
export interface Admitted {
  readonly admitted: true;
  readonly reservation: TokenReservation;
  readonly status: RateStatus;
}

export type Admission = Admitted | RateRefusal;

/**
 * The windows of requests and tokens a minute of every organization (contract: rate limits), with a clock of their own.
 * Each of the first three methods rejects where the windows cannot be reached, within a bounded time.
 */
export interface RateWindows {
  /**
   * Returns the refusal when the organization certainly has no request left now, or null. It counts nothing,
   * so that a caller can refuse without counting tokens. The tokens in its status may be older; no header of
   * such a refusal shows them.
   */
  exhausted(organization_id: string, limits: RateLimits): Promise<RateRefusal | null>;

  /**
   * Checks both limits together. An admitted request counts with its estimated tokens. A request refused only
   * for tokens still counts as a request; one refused for requests does not. A request above the whole token
   * limit is admitted when the window is empty, and then fills it. One without tokens is never refused for them.
   */
  admit(organization_id: string, limits: RateLimits, estimated_tokens: number): Promise<Admission>;

  /** Returns the organization's status; counts nothing. */
  status(organization_id: string, limits: RateLimits): Promise<RateStatus>;

  /** Drops empty windows, so that idle organizations take no space. */
  forgetIdle(): Promise<void>;
}
