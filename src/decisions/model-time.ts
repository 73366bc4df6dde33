import { EvaluationTimedOut } from '../../native/engine.ts';
import type { RequestSpan, SpanFailure, StepSpan } from '../observability/tracing.ts';
import { QueueTimedOut } from '../scheduling/model-scheduler.ts';
import type { Clock } from '../time/clock.ts';

/** The time of one request at the model: from its hold to its answer, or to its failure. */
export class ModelTime {
  readonly #asked_ms: number;
  #began_ms: number | null = null;
  #ended_ms: number | null = null;

  /** The step in progress: the wait, and then the model. */
  #step: StepSpan | undefined;

  constructor(
    private readonly clock: Pick<Clock, 'monotonic_ms'>,
    private readonly span: RequestSpan | null,
  ) {
    this.#asked_ms = clock.monotonic_ms();
    this.#step = span?.beginStep('wait');
  }

  /** Notes that a plan is scheduled; only the first one counts. */
  begin(): void {
    if (this.#began_ms !== null) return;
    this.#began_ms = this.clock.monotonic_ms();
    this.#step?.end();
    this.#step = this.span?.beginStep('model');
  }

  /** Notes the answer, or the failure. */
  end(failure: SpanFailure | null = null): void {
    if (this.#ended_ms !== null) return;
    this.#ended_ms = this.clock.monotonic_ms();
    this.#step?.end(failure);
  }

  /** Milliseconds from the hold to the first scheduled plan; up to the end where there was none. */
  get queue_ms(): number {
    return (this.#began_ms ?? this.#end_ms) - this.#asked_ms;
  }

  /** Milliseconds from the first scheduled plan on. */
  get model_ms(): number {
    return this.#end_ms - (this.#began_ms ?? this.#end_ms);
  }

  get #end_ms(): number {
    return this.#ended_ms ?? this.clock.monotonic_ms();
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
