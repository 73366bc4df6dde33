import type { BreakerState } from '../served-models/model-answerer.ts';

/** The consecutive failures of a member's requests after which it gets no more. */
const FAILURES_MAX = 3;
/** The rest of a member after a failed trial: twice as long each time, up to the maximum. */
const REST_MIN_MS = 1_000;
const REST_MAX_MS = 30_000;

/**
 * Decides if a member gets requests. At the start and after failures it first gets a health probe, so that no
 * client's request is the experiment. Pure: the time is an argument.
 */
export class CircuitBreaker {
  #state: BreakerState = 'untried';
  #failures = 0;
  #rest_ms = REST_MIN_MS;
  #due_ms = Number.NEGATIVE_INFINITY;

  /**
   * The state. `closed`: it gets requests. `open`: it failed and waits for a trial. `half_open`: it is on
   * trial. `untried`: it had none yet.
   */
  get state(): BreakerState {
    return this.#state;
  }

  /** Notes an answered request. A late answer, after the failures of others, proves nothing. */
  succeeded(): void {
    if (this.#state === 'closed') this.#failures = 0;
  }

  /**
   * Notes a failed request. After one too many, the trial is due at once: if the requests were the cause, the
   * member is back after one health probe.
   */
  failed(): void {
    if (this.#state !== 'closed') return;
    this.#failures += 1;
    if (this.#failures < FAILURES_MAX) return;
    this.#state = 'open';
    this.#due_ms = Number.NEGATIVE_INFINITY;
  }

  /**
   * Makes the member untrusted, because it may have changed: it gets a trial as a new one, at once or from a
   * time on. A running trial goes on.
   */
  distrust(due_ms = Number.NEGATIVE_INFINITY): void {
    if (this.#state === 'half_open' || this.#state === 'untried') return;
    this.#state = 'open';
    this.#failures = 0;
    this.#rest_ms = REST_MIN_MS;
    this.#due_ms = due_ms;
  }

  /** Begins a trial if one is due. If it returns true, the caller makes the trial and reports its result. */
  beginTrial(now_ms: number): boolean {
    const is_waiting = this.#state === 'open' || this.#state === 'untried';
    if (!is_waiting || now_ms < this.#due_ms) return false;
    this.#state = 'half_open';
    return true;
  }

  trialSucceeded(): void {
    this.#state = 'closed';
    this.#failures = 0;
    this.#rest_ms = REST_MIN_MS;
  }

  /** Notes a failed trial. The next one is due after a rest: the given one, or twice the last one. */
  trialFailed(now_ms: number, rest_ms?: number): void {
    this.#state = 'open';
    this.#due_ms = now_ms + (rest_ms ?? this.#rest_ms);
    if (rest_ms === undefined) this.#rest_ms = Math.min(REST_MAX_MS, this.#rest_ms * 2);
  }
}
