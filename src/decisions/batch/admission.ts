import type { TierLimits } from '../../contract/tiers.ts';
import { Refusal } from '../../errors/errors.ts';
import type { RateStatus } from '../../limits/rate-status.ts';
import type { Admission, RateWindows } from '../../limits/rate-windows.ts';
import { MS_PER_S } from '../../time/clock.ts';
import type { Pause } from '../../time/pause.ts';

/** The share of both rate windows that batches leave, so that single requests of their organization go on. */
const LEFT_SHARE = 0.1;

/** Seconds after which what a batch did not ask is worth sending again. */
const RETRY_AFTER_S = 5;

/** Who asks, and how much. */
interface Asked {
  readonly organization_id: string;
  readonly limits: TierLimits;
  readonly estimated_tokens: number;
  /** Aborted when the line is to wait no longer. */
  readonly patience: AbortSignal;
}

/**
 * Lets a line of a batch in once the windows of its organization have room for it. Where single requests take what
 * becomes free, it waits on. Null when its patience ended before. Rejects where the windows cannot be reached.
 */
export async function admitInTime(
  { limiter, pause }: { readonly limiter: RateWindows; readonly pause: Pause },
  { organization_id, limits, estimated_tokens, patience }: Asked,
): Promise<(Admission & { readonly admitted: true }) | null> {
  while (!patience.aborted) {
    // An admission that fails may count as a request; a look at the windows counts as nothing.
    const status = await limiter.status(organization_id, limits);
    let wait_s = status.reset_tokens_s;
    if (!hasRequests(status)) wait_s = status.reset_requests_s;
    else if (hasTokens(status, estimated_tokens)) {
      const admission = await limiter.admit(organization_id, limits, estimated_tokens);
      if (admission.admitted) return admission;
      wait_s = admission.retry_after_s;
    }
    await pause(wait_s * MS_PER_S, patience);
  }
  return null;
}

/** Returns true where a line fits beside the requests that batches leave. */
function hasRequests({ remaining_requests, limit_requests }: RateStatus): boolean {
  return remaining_requests > Math.floor(limit_requests * LEFT_SHARE);
}

/** Returns true where so many tokens fit beside those that batches leave, or the window is empty. */
function hasTokens({ remaining_tokens, limit_tokens }: RateStatus, tokens: number): boolean {
  return (
    remaining_tokens === limit_tokens || remaining_tokens >= tokens + Math.floor(limit_tokens * LEFT_SHARE)
  );
}

/** Returns the refusal of a line that waited when its batch ended, and was not asked. */
export function notAsked(): Refusal<'overloaded'> {
  return new Refusal('overloaded', {
    message: 'The batch ended before this line was asked: send it again.',
    retry_after_s: RETRY_AFTER_S,
  });
}
