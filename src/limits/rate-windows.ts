import type { Clock } from '../clock.ts';
import type { RateLimiter } from './rate-limiter.ts';
import type { RateLimits, RateRefusal, RateStatus } from './rate-status.ts';
import type { WindowEntry } from './sliding-window.ts';

/** An admitted request's place in the token window. */
export interface TokenReservation {
  /**
   * Puts what was really billed in the place of the estimate; 0 for a request that failed or was refused. Called once
   * at most. Counts before any later admission of this process. Never rejects: where the windows cannot be reached, the
   * estimate stays.
   */
  settle(billed_tokens: number): Promise<void>;
}

/** A request that was let in and counted, or the limit that is reached. */
export type Admission =
  | { readonly admitted: true; readonly reservation: TokenReservation; readonly status: RateStatus }
  | RateRefusal;

/**
 * The windows of requests and tokens a minute of every organization (contract: rate limits), with a clock of their own.
 * Each of the first three methods rejects where the windows cannot be reached, within a bounded time.
 */
export interface RateWindows {
  /**
   * The refusal when it is certain that the organization has no request left now, or null. Lets a caller refuse without
   * working out the tokens; nothing is counted by it. Its status may have older tokens, which no header of such a
   * refusal shows.
   */
  exhausted(organization_id: string, limits: RateLimits): Promise<RateRefusal | null>;

  /**
   * Checks both limits together. A request that passes is counted with its estimated tokens. One that only lacks
   * tokens counts as a request all the same; one that lacks requests counts nowhere. A request that needs more than
   * the whole token allowance runs when the window is empty, and then fills it.
   */
  admit(organization_id: string, limits: RateLimits, estimated_tokens: number): Promise<Admission>;

  /** Where the organization stands; nothing is counted by it. */
  status(organization_id: string, limits: RateLimits): Promise<RateStatus>;

  /** Drops the windows that have become empty, so that organizations gone quiet take no room. */
  forgetIdle(): Promise<void>;
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
