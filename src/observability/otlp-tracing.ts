import {
  type Attributes,
  type Context,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { isLeftByClient, SERVER_FAULT } from '../errors/abort-reasons.ts';
import type { Clock } from '../time/clock.ts';
import type {
  RequestSpan,
  SpanFailure,
  StepSpan,
  TraceableRequest,
  TracedDecision,
  TracedRequest,
  TracedStep,
  Tracing,
} from './tracing.ts';

/** The destination of spans, and their bounds. */
export interface OtlpSettings {
  /** The full address to which spans are posted. */
  readonly url: string;
  /** The headers of every post, for collectors that authenticate. */
  readonly headers: Readonly<Record<string, string>>;
  /** The share, from 0 to 1, of the requests that begin a trace here or whose client samples theirs. */
  readonly ratio: number;
  /** Returns a number from 0 on and below 1, by chance. */
  readonly random: () => number;
  /** The version of this program. */
  readonly version: string;
  /** The id that distinguishes the processes of a service. */
  readonly instance_id: string;
  readonly clock: Clock;
}

/** Spans were not sent; the message consists of fixed words and numbers. */
export class TraceExportFailed extends Error {
  override readonly name = 'TraceExportFailed';
}

/** The most waiting spans, including those being sent: some thousand requests, a few megabytes. */
const WAITING_SPANS_MAX = 8_192;
/** The spans of one post. The event loop serializes them without a pause, in about a millisecond. */
const SPANS_PER_POST = 256;
/** The time for which a span waits for others. */
const DELAY_MS = 2_000;
/** The longest time of one post, including retries. A stop waits as long for the last ones. */
const POST_MS = 5_000;

/** The SDK's log is its only word about a collector that took a post and refused some of its spans. */
const PARTIAL_SUCCESS = 'Received Partial Success response:';
const REJECTED_SPANS = /"rejectedSpans":"?([1-9]\d{0,9})\b/;

/** W3C Trace Context: version, trace id, span id of the caller, flags. Later versions may append fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;
const FIRST_VERSION = '00';
const FIRST_VERSION_LENGTH = 55;

/** Returns the caller's span; undefined where the header is missing or invalid. */
export function callerOf(traceparent: string | null): SpanContext | undefined {
  const [, version, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (version === FIRST_VERSION && traceparent?.length !== FIRST_VERSION_LENGTH) return undefined;
  const caller = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(caller) ? caller : undefined;
}

/**
 * Returns the clock for the spans of one request, in Unix milliseconds. The SDK's milliseconds are whole, but
 * a step is shorter.
 */
function timeline(clock: Clock): () => number {
  const difference_ms = clock.now_ms() - clock.monotonic_ms();
  return () => difference_ms + clock.monotonic_ms();
}

/** Returns a sampler that does not look at the trace id, because a client chooses its own. */
function samplerByChance(ratio: number, random: () => number): Sampler {
  const { RECORD_AND_SAMPLED, NOT_RECORD } = SamplingDecision;
  return {
    shouldSample: () => ({ decision: random() < ratio ? RECORD_AND_SAMPLED : NOT_RECORD }),
    toString: () => `ByChance{${ratio}}`,
  };
}

/** Sends traces to an OpenTelemetry collector, by OTLP as JSON over HTTP. */
export class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  #report: (error: Error) => void = () => {};
  /** The spans that have ended, and are neither sent nor lost. */
  #waiting_spans = 0;

  readonly #clock: Clock;

  constructor({ url, headers, ratio, random, version, instance_id, clock }: OtlpSettings) {
    this.#clock = clock;
    const nothing = () => {};
    const quiet = { error: nothing, info: nothing, debug: nothing, verbose: nothing };
    diag.setLogger(
      { ...quiet, warn: (message, said) => this.#reportRejected(message, said) },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    );
    const by_chance = samplerByChance(ratio, random);
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({
        'service.name': 'tds',
        'service.version': version,
        'service.instance.id': instance_id,
      }),
      sampler: new ParentBasedSampler({
        root: by_chance,
        // A client can have fewer of its requests traced than the operator wants, but not more.
        remoteParentSampled: by_chance,
        remoteParentNotSampled: new AlwaysOffSampler(),
      }),
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: this.#counted(
            new OTLPTraceExporter({
              url,
              headers: { ...headers },
              timeoutMillis: POST_MS,
              concurrencyLimit: WAITING_SPANS_MAX / SPANS_PER_POST,
            }),
          ),
          maxQueueSize: WAITING_SPANS_MAX,
          maxExportBatchSize: SPANS_PER_POST,
          scheduledDelayMillis: DELAY_MS,
          exportTimeoutMillis: 2 * POST_MS,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer('tds', version);
  }

  begin({ method, headers, signal }: TraceableRequest, route: string | null): RequestSpan | null {
    const caller = callerOf(headers.get('traceparent'));
    const parent = caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
    const now_ms = timeline(this.#clock);
    const span = this.#tracer.startSpan(
      route === null ? method : `${method} ${route}`,
      {
        kind: SpanKind.SERVER,
        startTime: now_ms(),
        attributes: { 'http.request.method': method, ...(route === null ? {} : { 'http.route': route }) },
      },
      parent,
    );
    if (!span.isRecording()) return null;
    const within = trace.setSpan(ROOT_CONTEXT, span);
    return {
      trace_id: span.spanContext().traceId,
      beginStep: (step) => this.#beginStep(step, within, now_ms, signal),
      describe: (decision) => span.setAttributes(decisionAttributes(decision)),
      end: (request) => {
        span.setAttributes(requestAttributes(request));
        const { code, status } = request;
        this.#end(span, code === null ? null : { code, status }, now_ms());
      },
    };
  }

  onFailure(report: (error: Error) => void): void {
    this.#report = report;
  }

  async close(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const deadline = setTimeout(resolve, POST_MS);
    // Spans that could not be sent were reported.
    await Promise.race([this.#provider.shutdown().catch(() => {}), late]);
    clearTimeout(deadline);
    if (this.#waiting_spans > 0) {
      this.#report(
        new TraceExportFailed(`The collector does not answer: ${this.#waiting_spans} spans are lost.`),
      );
    }
    // The loss has been reported.
    this.#report = () => {};
  }

  #beginStep(step: TracedStep, within: Context, now_ms: () => number, client: AbortSignal): StepSpan {
    const span = this.#tracer.startSpan(step, { startTime: now_ms() }, within);
    return {
      end: (failure = null) => {
        // The failure of a step that its client left is the end of its work, as in the log.
        const is_left = failure !== null && isLeftByClient(failure, client);
        this.#end(span, is_left ? null : failure, now_ms());
      },
    };
  }

  /**
   * Ends a span. If too many wait, it is dropped and reported here, because the SDK would drop it silently.
   */
  #end(span: Span, failure: SpanFailure | null, at_ms: number): void {
    if (this.#waiting_spans >= WAITING_SPANS_MAX) {
      this.#report(new TraceExportFailed(`More than ${WAITING_SPANS_MAX} spans wait to be sent.`));
      return;
    }
    this.#waiting_spans += 1;
    if (failure !== null) {
      span.setAttributes({ 'error.type': failure.code });
      // A client's error is no error of this service, in traces as in the log.
      if (failure.status >= SERVER_FAULT) span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(at_ms);
  }

  #reportRejected(message: string, said: unknown): void {
    const [, spans] = (message === PARTIAL_SUCCESS && REJECTED_SPANS.exec(String(said))) || [];
    if (spans !== undefined) {
      this.#report(new TraceExportFailed(`The collector took a post and refused ${spans} of its spans.`));
    }
  }

  /** Returns the exporter, with counting of waiting spans and reports of lost ones. */
  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done) =>
        exporter.export(spans, (result) => {
          this.#waiting_spans -= spans.length;
          if (result.error !== undefined) this.#report(exportFailure(result.error, spans.length));
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }
}

/** Returns an error in our own words, because the collector's message could contain anything. */
function exportFailure(error: Error, spans: number): TraceExportFailed {
  const code = 'code' in error && ['string', 'number'].includes(typeof error.code) ? error.code : null;
  const reason =
    typeof code === 'number' ? `The collector answered with ${code}` : `The collector cannot be reached`;
  const detail = typeof code === 'string' && /^E[A-Z_]+$/.test(code) ? ` (${code})` : '';
  return new TraceExportFailed(`${reason}${detail}: ${spans} spans are lost.`);
}

function decisionAttributes({ model, mode, questions, input_tokens }: TracedDecision): Attributes {
  return {
    'tds.model': model,
    'tds.mode': mode,
    ...(questions === undefined ? {} : { 'tds.questions': questions }),
    ...(input_tokens === undefined ? {} : { 'tds.input_tokens': input_tokens }),
  };
}

function requestAttributes(request: TracedRequest): Attributes {
  const { request_id, status, organization_id, project_id, key_id } = request;
  return {
    'http.response.status_code': status,
    'tds.request_id': request_id,
    ...(organization_id === null ? {} : { 'tds.organization_id': organization_id }),
    ...(project_id === null ? {} : { 'tds.project_id': project_id }),
    ...(key_id === null ? {} : { 'tds.key_id': key_id }),
  };
}
