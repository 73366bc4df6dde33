import type { BreakerState } from '../models/model-life.ts';

/** Requests of one member that fail one after the other before it gets no more. */
const FAILURES_MAX = 3;
/** How long a member that failed its trial rests before the next one: twice as long each time, up to the most. */
const REST_MIN_MS = 1_000;
const REST_MAX_MS = 30_000;

/**
 * Whether a member gets requests. At the start and after failures it is tried with a small question of our own first. No client's request is the experiment. Pure: the time is an argument.
 */
export class CircuitBreaker {
  #state: BreakerState = 'untried';
  #failures = 0;
  #rest_ms = REST_MIN_MS;
  #due_ms = Number.NEGATIVE_INFINITY;

  /** `closed`: it gets requests. `open`: it failed and waits for a trial. `half_open`: it is being tried. `untried`: never. */
  get state(): BreakerState {
    return this.#state;
  }

  /** A request was answered. One that comes late, when others have failed since, proves nothing. */
  succeeded(): void {
    if (this.#state === 'closed') this.#failures = 0;
  }

  /**
   * A request failed. The trial is due at once when it was one too many. The requests may have been the cause, and then
   * the member is back after one small question.
   */
  failed(): void {
    if (this.#state !== 'closed') return;
    this.#failures += 1;
    if (this.#failures < FAILURES_MAX) return;
    this.#state = 'open';
    this.#due_ms = Number.NEGATIVE_INFINITY;
  }

  /**
   * What was learned of the member may hold no more: it is tried as a new one, at once or from a time on. A trial that
   * runs goes on.
   */
  distrust(due_ms = Number.NEGATIVE_INFINITY): void {
    if (this.#state === 'half_open' || this.#state === 'untried') return;
    this.#state = 'open';
    this.#failures = 0;
    this.#rest_ms = REST_MIN_MS;
    this.#due_ms = due_ms;
  }

  /** Begins a trial where one is due; whoever gets true makes it, and tells how it ended. */
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

  /** The next trial is due after a rest: of that length, or, for a failure, twice as long as the last one. */
  trialFailed(now_ms: number, rest_ms?: number): void {
    this.#state = 'open';
    this.#due_ms = now_ms + (rest_ms ?? this.#rest_ms);
    if (rest_ms === undefined) this.#rest_ms = Math.min(REST_MAX_MS, this.#rest_ms * 2);
  }
}
