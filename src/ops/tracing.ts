import { Refusal } from '../errors.ts';
import type { Mode } from '../questions/question.ts';

/** The parts of a request that have a span of their own; `wait` is the time between the hold and the first turn. */
export type TracedStep =
  | 'key'
  | 'idempotency'
  | 'request'
  | 'plan'
  | 'hold'
  | 'wait'
  | 'model'
  | 'charge'
  | 'release'
  | 'response';

/** Why a span ended without what it was for. */
export interface SpanFailure {
  readonly code: string;
  readonly status: number;
}

/** One step that has begun. */
export interface StepSpan {
  end(failure?: SpanFailure | null): void;
}

/** What is known of a request that is being answered as soon as it is checked. */
export interface TracedDecision {
  /** The id of the catalog's model. */
  readonly model: string;
  readonly mode: Mode;
  /** Of a request that was answered. */
  readonly questions?: number;
  readonly input_tokens?: number;
}

/** What a span says of a request at its end: metadata only (contract: records are never kept). */
export interface TracedRequest {
  readonly request_id: string;
  readonly status: number;
  /** Null for success. */
  readonly code: string | null;
  readonly organization_id: string | null;
  readonly project_id: string | null;
  readonly key_id: string | null;
}

/** The span of one request; it is sent once it is ended, and one that is never ended is never sent. */
export interface RequestSpan {
  /** Of the trace that the span is a part of, in hexadecimal: the log's lines name it. */
  readonly trace_id: string;
  beginStep(step: TracedStep): StepSpan;
  describe(decision: TracedDecision): void;
  end(request: TracedRequest): void;
}

/** What a trace needs of a request at its begin. */
export interface TraceableRequest {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
}

/** Takes the course of requests, for whoever watches them. Nothing here throws or waits but `close`. */
export interface Tracing {
  /**
   * Begins the span of a request to that route, or to no known one, as a part of the trace that its `traceparent` names.
   * Null where the request is not traced.
   */
  begin(request: TraceableRequest, route: string | null): RequestSpan | null;
  /** Names who is told that spans were lost. Called once. */
  onFailure(report: (error: Error) => void): void;
  /** Sends what was not sent yet, for some seconds at most. */
  close(): Promise<void>;
}

/** For a service that nobody traces. */
export const NO_TRACING: Tracing = {
  begin: () => null,
  onFailure: () => {},
  close: () => Promise.resolve(),
};

/** A result that is refused, or none of it is. */
function refusalIn(result: unknown): SpanFailure | null {
  return result instanceof Refusal ? result : null;
}

/** The result of the work, which is a step of that request; `failureOf` finds a refusal in a result that is none itself. */
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
