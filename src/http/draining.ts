import { Refusal } from '../errors/errors.ts';

/** The `Retry-After` in seconds: a restarted service answers by then. */
const RETRY_AFTER_S = 5;

/** Its signal is aborted when a stop begins: running requests are finished, and new ones are refused. */
export type Draining = Pick<AbortController, 'signal'>;

/**
 * Returns the refusal of a request that came, or was still arriving, at a stop. It is free, and no limit
 * counts it.
 */
export function stopping(): Refusal<'overloaded'> {
  return new Refusal('overloaded', {
    message: 'The service is being stopped: send the request again.',
    retry_after_s: RETRY_AFTER_S,
  });
}
