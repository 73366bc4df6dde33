import type { RequestSpan, SpanFailure, StepSpan } from '../observability/tracing.ts';
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
    private readonly span: RequestSpan | null = null,
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
