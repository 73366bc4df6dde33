import { Refusal } from '../errors/errors.ts';

/** The `Retry-After` in seconds: a restarted service answers by then. */
const RETRY_AFTER_S = 5;

/** The state of a stop: running requests are finished, and new ones are refused. */
export class Draining {
  readonly #begun = new AbortController();

  get has_begun(): boolean {
    return this.#begun.signal.aborted;
  }

  /** Aborted at the beginning, for what would otherwise go on for long. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  /** Refuses new requests from now on. */
  begin(): void {
    this.#begun.abort();
  }
}

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
