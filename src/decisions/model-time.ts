import type { Clock } from '../clock.ts';

/** How long one request was at the model: from its hold to its answer, or to its failure. */
export class ModelTime {
  readonly #asked_ms: number;
  #began_ms: number | null = null;
  #ended_ms: number | null = null;

  constructor(private readonly clock: Pick<Clock, 'monotonic_ms'>) {
    this.#asked_ms = clock.monotonic_ms();
  }

  /** A turn has come; only the first one counts. */
  begin(): void {
    this.#began_ms ??= this.clock.monotonic_ms();
  }

  end(): void {
    this.#ended_ms ??= this.clock.monotonic_ms();
  }

  /** Milliseconds from the hold to the first turn; all of it where there was none. */
  get queue_ms(): number {
    return (this.#began_ms ?? this.#end_ms) - this.#asked_ms;
  }

  /** Milliseconds from the first turn on. */
  get model_ms(): number {
    return this.#end_ms - (this.#began_ms ?? this.#end_ms);
  }

  get #end_ms(): number {
    return this.#ended_ms ?? this.clock.monotonic_ms();
  }
}
