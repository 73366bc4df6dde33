import { Refusal } from '../errors/errors.ts';
import type { Mode } from '../questions/question.ts';

/**
 * The parts of a request with a span of their own: its steps, of which the answer has two. `wait` is the time between
 * the hold and the first scheduled plan, and `model` the time from there.
 */
export type TracedStep =
  | 'key'
  | 'idempotency'
  | 'request'
  | 'admission'
  | 'hold'
  | 'wait'
  | 'model'
  | 'charge'
  | 'release'
  | 'response';

/** The reason why a span ended in failure. */
export interface SpanFailure {
  readonly code: string;
  readonly status: number;
  /** Present where the client left: it ended its connection within its body. */
  readonly is_client_gone?: true | undefined;
}

/** One step in progress. */
export interface StepSpan {
  end(failure?: SpanFailure | null): void;
}

/** The properties of a request that are known once it is checked. */
export interface TracedDecision {
  /** The id of the catalog's model. */
  readonly model: string;
  readonly mode: Mode;
  /** Present for an answered request. */
  readonly questions?: number;
  readonly input_tokens?: number;
}

/** The properties of a span at its end: metadata only (contract: records are never kept). */
export interface TracedRequest {
  readonly request_id: string;
  readonly status: number;
  /** Null for success. */
  readonly code: string | null;
  readonly organization_id: string | null;
  readonly project_id: string | null;
  readonly key_id: string | null;
}

/** The span of one request. It is sent once it is ended, and never otherwise. */
export interface RequestSpan {
  /** The id of the span's trace, in hexadecimal, as in the log's lines. */
  readonly trace_id: string;
  beginStep(step: TracedStep): StepSpan;
  describe(decision: TracedDecision): void;
  end(request: TracedRequest): void;
}

/** The parts of a request that a trace needs at its start. */
export interface TraceableRequest {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
  /** Aborted when the client goes away, or a stop cuts the request. */
  readonly signal: AbortSignal;
}

/** Traces requests. No method throws or waits, except `close`. */
export interface Tracing {
  /**
   * Begins the span of a request to that route, or to no known one, as a part of the trace in its
   * `traceparent`. Returns null where the request is not traced.
   */
  begin(request: TraceableRequest, route: string | null): RequestSpan | null;
  /** Sets the receiver of reports about lost spans. Called once. */
  onFailure(report: (error: Error) => void): void;
  /** Sends the remaining spans, for some seconds at most. */
  close(): Promise<void>;
}

/** The tracing of a service without traces. */
export const NO_TRACING: Tracing = {
  begin: () => null,
  onFailure: () => {},
  close: () => Promise.resolve(),
};

/** Returns a result that is a refusal; null for any other. */
function refusalIn(result: unknown): SpanFailure | null {
  return result instanceof Refusal ? result : null;
}

/**
 * Returns the result of the work, which is a step of that request. `failureOf` finds a failure inside other
 * results.
 */
export function inStep<Result>(
  span: RequestSpan | null,
  step: TracedStep,
  work: () => Promise<Result>,
  failureOf: (result: Result) => SpanFailure | null = refusalIn,
): Promise<Result> {
  return span === null ? work() : traced(span.beginStep(step), work, failureOf);
}

async function traced<Result>(
  step: StepSpan,
  work: () => Promise<Result>,
  failureOf: (result: Result) => SpanFailure | null,
): Promise<Result> {
  let failure: SpanFailure | null = null;
  try {
    const result = await work();
    failure = failureOf(result);
    return result;
  } finally {
    step.end(failure);
  }
}
