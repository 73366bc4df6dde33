import type { TierLimits } from '../../contract/tiers.ts';
import { type RateStatus, WINDOW_MS } from '../../limits/rate-status.ts';
import type { Admitted, RateWindows } from '../../limits/rate-windows.ts';
import { type Clock, MS_PER_S } from '../../time/clock.ts';
import type { Pause } from '../../time/pause.ts';
import { rateLimited } from '../explained-refusals.ts';
import { DecisionRefusal } from '../refusal.ts';

/** The share of both rate windows that batches leave, so that single requests of their organization go on. */
const LEFT_SHARE = 0.1;
/**
 * The longest wait for tokens of a line above what batches may use, which all lines of its organization wait behind.
 * After one window those before it have left, and in another one single requests may leave room.
 */
const LARGE_LINE_WAIT_MS = 2 * WINDOW_MS;

/** The windows, and how to wait for them. */
interface Windows {
  readonly limiter: RateWindows;
  readonly pause: Pause;
  readonly clock: Pick<Clock, 'monotonic_ms'>;
}

/** Who asks, and how much. */
interface Asked {
  /** Returns the limits that are in force now, or the refusal of a caller who may ask no longer. Never rejects. */
  readonly limitsNow: () => Promise<TierLimits | DecisionRefusal>;
  readonly organization_id: string;
  readonly estimated_tokens: number;
  /** Aborted when the line is to wait no longer. */
  readonly patience: AbortSignal;
}

/**
 * Lets a line of a batch in once the windows of its organization have room for it. Where single requests take what
 * becomes free, it waits on, unless it is larger than what batches may use. Null when its patience ended before. Rejects
 * where the windows cannot be reached.
 */
export async function admitInTime(
  { limiter, pause, clock }: Windows,
  { limitsNow, organization_id, estimated_tokens, patience }: Asked,
): Promise<Admitted | DecisionRefusal | null> {
  let large_until_ms: number | undefined;
  while (!patience.aborted) {
    const limits = await limitsNow();
    if (limits instanceof DecisionRefusal) return limits;
    // An admission that fails may count as a request; a look at the windows counts as nothing.
    const status = await limiter.status(organization_id, limits);
    let wait_s = status.reset_tokens_s;
    if (!hasRequests(status)) wait_s = status.reset_requests_s;
    else if (hasTokens(status, estimated_tokens)) {
      const admission = await limiter.admit(organization_id, limits, estimated_tokens);
      if (admission.admitted) return admission;
      wait_s = admission.retry_after_s;
    } else if (tokensBeside(status, estimated_tokens) > status.limit_tokens) {
      const now_ms = clock.monotonic_ms();
      large_until_ms ??= now_ms + LARGE_LINE_WAIT_MS;
      if (now_ms + wait_s * MS_PER_S > large_until_ms) {
        const refusal = { admitted: false, limit: 'tokens', retry_after_s: wait_s, status } as const;
        return rateLimited(refusal, limits, estimated_tokens);
      }
    }
    await pause(wait_s * MS_PER_S, patience);
  }
  return null;
}

/** Returns true where a line fits beside the requests that batches leave. */
function hasRequests({ remaining_requests, limit_requests }: RateStatus): boolean {
  return remaining_requests > Math.floor(limit_requests * LEFT_SHARE);
}

/**
 * Returns true where so many tokens fit beside those that batches leave. A line that never does takes those too; one
 * above the whole limit takes an empty window.
 */
function hasTokens(status: RateStatus, tokens: number): boolean {
  if (tokens === 0) return true;
  const { remaining_tokens, limit_tokens } = status;
  const beside = tokensBeside(status, tokens);
  return remaining_tokens >= (beside <= limit_tokens ? beside : Math.min(tokens, limit_tokens));
}

/** Returns the tokens of a line with those that batches leave. */
function tokensBeside({ limit_tokens }: RateStatus, tokens: number): number {
  return tokens + Math.floor(limit_tokens * LEFT_SHARE);
}
