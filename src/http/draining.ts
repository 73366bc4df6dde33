import { Refusal } from '../errors.ts';

/** Seconds after which a request is worth sending again: a service that starts anew answers by then. */
const RETRY_AFTER_S = 5;

/** Whether the service is being stopped. What runs is finished then, and new requests are refused. */
export class Draining {
  #has_begun = false;

  get has_begun(): boolean {
    return this.#has_begun;
  }

  /** From now on new requests are refused. */
  begin(): void {
    this.#has_begun = true;
  }
}

/** The refusal of a request that came, or was still arriving, at a stop. It is free, and no limit counts it. */
export function stopping(): Refusal<'overloaded'> {
  return new Refusal('overloaded', {
    message: 'The service is being stopped: send the request again.',
    retry_after_s: RETRY_AFTER_S,
  });
}
