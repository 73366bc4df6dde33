import { EvaluationTimedOut } from '../../native/engine.ts';
import type { RequestSpan, SpanFailure, StepSpan } from '../observability/tracing.ts';
import { QueueTimedOut } from '../scheduling/model-scheduler.ts';
import type { Clock } from '../time/clock.ts';

/**
 * The time of one request from its hold to its answer, or to its failure: the model's own (contract: `latency_ms`), and
 * the wait for it.
 */
export class ModelTime {
  /** True once the request has its slot at the model. One that a full queue refused waited for nothing. */
  has_slot = false;
  readonly #asked_ms: number;
  #has_begun = false;
  /** The plans that the model has. */
  #plans = 0;
  /** The time since which it has one without a pause. */
  #since_ms = 0;
  /** The time for which it had one before. */
  #before_ms = 0;
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

  /** Notes that a plan is scheduled. Returns a function that notes its end. */
  begin(): () => void {
    if (!this.#has_begun) {
      this.#has_begun = true;
      this.#step?.end();
      this.#step = this.span?.beginStep('model');
    }
    if (this.#plans === 0) this.#since_ms = this.#end_ms;
    this.#plans += 1;
    return () => {
      this.#plans -= 1;
      if (this.#plans === 0) this.#before_ms += this.#end_ms - this.#since_ms;
    };
  }

  /** Notes the answer, or the failure. */
  end(failure: SpanFailure | null = null): void {
    if (this.#ended_ms !== null) return;
    this.#ended_ms = this.clock.monotonic_ms();
    this.#step?.end(failure);
  }

  /** Milliseconds in which the model had no plan of the request. */
  get queue_ms(): number {
    return Math.max(0, this.#end_ms - this.#asked_ms - this.model_ms);
  }

  /** Milliseconds in which the model had a plan of the request. */
  get model_ms(): number {
    return this.#before_ms + (this.#plans === 0 ? 0 : this.#end_ms - this.#since_ms);
  }

  /** The milliseconds of the model, rounded to the microsecond, so that usage rows and responses agree. */
  get latency_ms(): number {
    return roundedLatency(this.model_ms);
  }

  get #end_ms(): number {
    return this.#ended_ms ?? this.clock.monotonic_ms();
  }
}

/** Returns a duration in milliseconds, rounded to the microsecond. */
export function roundedLatency(duration_ms: number): number {
  return Math.round(duration_ms * 1_000) / 1_000;
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
