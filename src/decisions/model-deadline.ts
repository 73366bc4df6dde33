import { EvaluationTimedOut } from '../../native/engine.ts';

/** A request has waited too long in the queue of the model. */
export class QueueTimedOut extends Error {
  override readonly name = 'QueueTimedOut';
  /** Whole seconds until the earlier requests should be served. */
  constructor(readonly retry_after_s: number) {
    super('The model was busy for too long.');
  }
}

/** The longest evaluation of a request that should take less than a tenth of it, or whose model was not measured. */
const EVALUATION_MS = 300_000;
/** A request waits for others between its plans, and others compute beside it. */
const SLOWNESS_MAX = 10;

/**
 * Returns the longest time from a request's first scheduled plan to its answer. It is the operator's, or follows the time
 * that the request should take alone. `expected_ms` is undefined where no speed was measured.
 */
export function evaluationLimit_ms(set_ms: number | null, expected_ms: number | undefined): number {
  return set_ms ?? Math.max(EVALUATION_MS, Math.ceil(SLOWNESS_MAX * (expected_ms ?? 0)));
}

/**
 * The deadlines of a request at the model: one for its first scheduled plan, and one from there to its answer. The
 * signal is aborted with `QueueTimedOut` or `EvaluationTimedOut` when one has passed, and as `client` is.
 */
export class ModelDeadline implements Disposable {
  readonly #given_up = new AbortController();
  readonly #forward: () => void;
  #phase: 'loading' | 'waiting' | 'evaluating' = 'loading';
  #timer: Timer | undefined;

  constructor(
    private readonly client: AbortSignal,
    private readonly limits: { readonly waiting_ms: number; readonly evaluation_ms: () => number },
  ) {
    this.#forward = () => this.#given_up.abort(client.reason);
    if (client.aborted) this.#forward();
    client.addEventListener('abort', this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#given_up.signal;
  }

  /**
   * Starts the wait for the first scheduled plan, once the model is loaded; `retryAfter_s` is called when it has been
   * too long.
   */
  wait(retryAfter_s: () => number): void {
    if (this.#phase !== 'loading') return;
    this.#enter('waiting', this.limits.waiting_ms, () => new QueueTimedOut(retryAfter_s()));
  }

  /** Starts the evaluation, when a plan is scheduled. */
  begin(): void {
    if (this.#phase === 'evaluating') return;
    const overdue = () => new EvaluationTimedOut('The model did not answer in time.');
    this.#enter('evaluating', this.limits.evaluation_ms(), overdue);
  }

  /** Ends the deadlines, when the request is done with the model. */
  end(): void {
    clearTimeout(this.#timer);
    this.client.removeEventListener('abort', this.#forward);
  }

  [Symbol.dispose](): void {
    this.end();
  }

  #enter(phase: 'waiting' | 'evaluating', duration_ms: number, reason: () => Error): void {
    this.#phase = phase;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#given_up.abort(reason()), duration_ms);
  }
}
