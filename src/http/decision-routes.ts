import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import { LEFT_OUT_HEADER } from '../contract/left-out-header.ts';
import { microsOf } from '../contract/money.ts';
import type { DecisionCall, DecisionOutcome } from '../decisions/call.ts';
import { decide } from '../decisions/decide.ts';
import { ignoredFieldNames, ignoredFieldsHeader } from '../decisions/ignored-fields.ts';
import { OpenAiTranslation } from '../decisions/openai/openai-shape.ts';
import { OpenAiDecisionRequestSchema, OpenAiDecisionSchema } from '../decisions/openai/schemas.ts';
import type { DecisionServices } from '../decisions/ports.ts';
import { DECISION_CODES, type DecisionCode } from '../decisions/refusal.ts';
import {
  DecisionRequestSchema,
  DecisionResponseSchema,
  IdempotencyKeySchema,
  ModeSchema,
  SystemOneRequestSchema,
} from '../decisions/schemas.ts';
import { Refusal } from '../errors/errors.ts';
import type { JsonValue } from '../json/json-value.ts';
import { NESTING_MAX } from '../json/read-json.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Clock } from '../time/clock.ts';
import { readJsonBody } from './body.ts';
import type { BodyLimits } from './body-bytes.ts';
import { ACCEPTED_CODINGS } from './content-encoding.ts';
import type { RequestContext } from './context.ts';
import {
  DECISION_ANSWERS,
  DECISION_REQUESTS,
  SYSTEM_ONE_ANSWERS,
  SYSTEM_ONE_REQUESTS,
} from './decision-examples.ts';
import { keyWithinBudget, type RefusalGateServices, spendRefusal } from './refusal-gate.ts';
import { jsonResponse, OPEN_FORMAT_REQUEST_ID_HEADER, rateHeaders, requestRateHeaders } from './responses.ts';
import {
  defineRoute,
  type Examples,
  type NamedSchema,
  type Parameter,
  type Refused,
  type Route,
} from './route.ts';

/** All requests with the same value get one decision (draft-ietf-httpapi-idempotency-key-header). */
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';
/** Present with the answer of an earlier request. */
const REPLAYED_HEADER = 'idempotent-replayed';

/** The parts that answer a request for a decision. */
export type DecisionRouteServices = DecisionServices &
  RefusalGateServices & {
    readonly body_limits: BodyLimits;
    readonly metrics: Metrics;
  };

/** The route's facts about a request for a decision, before its body. */
type AskedBy = Pick<DecisionCall, 'endpoint' | 'default_model' | 'key' | 'query_mode'> &
  Partial<Pick<DecisionCall, 'caller' | 'idempotency_key' | 'patience'>> & {
    /** Translates bodies in OpenAI's shape; null where only the contract's is accepted. */
    readonly openai: OpenAiTranslation | null;
    /** Reads the body, where it is not the request's own. */
    readonly reading?: BodyReading;
  };

/** Reads a body, and tells the bytes that came. */
type BodyReading = Pick<DecisionCall, 'readBody' | 'sent_body' | 'body_bytes'>;

/** The differences between the two paths of decisions. */
interface DecisionEndpoint {
  readonly path: '/v1/decisions' | '/v1/systemone';
  readonly summary: string;
  readonly bodies: readonly [NamedSchema, ...NamedSchema[]];
  readonly responses: readonly [NamedSchema, ...NamedSchema[]];
  readonly examples: { readonly requests: Examples; readonly answers: Examples };
  /** The model of a body that names none; null where it must name one. */
  readonly default_model: string | null;
  readonly request_id_copy?: string;
}

/** The bodies of `POST /v1/decisions`. */
export const DECISION_BODIES: readonly [NamedSchema, ...NamedSchema[]] = [
  { name: 'DecisionRequest', schema: DecisionRequestSchema },
  { name: 'OpenAiDecisionRequest', schema: OpenAiDecisionRequestSchema },
];

const DECISION_RESPONSE: NamedSchema = { name: 'DecisionResponse', schema: DecisionResponseSchema };

const ENDPOINTS: readonly DecisionEndpoint[] = [
  {
    path: '/v1/decisions',
    summary: 'Decide typed questions about one record',
    bodies: DECISION_BODIES,
    responses: [DECISION_RESPONSE, { name: 'OpenAiDecision', schema: OpenAiDecisionSchema }],
    examples: { requests: DECISION_REQUESTS, answers: DECISION_ANSWERS },
    default_model: null,
  },
  {
    path: '/v1/systemone',
    summary: 'The same, for clients of the open decision-request format',
    bodies: [{ name: 'SystemOneRequest', schema: SystemOneRequestSchema }],
    responses: [DECISION_RESPONSE],
    examples: { requests: SYSTEM_ONE_REQUESTS, answers: SYSTEM_ONE_ANSWERS },
    default_model: DEFAULT_MODEL,
    request_id_copy: OPEN_FORMAT_REQUEST_ID_HEADER,
  },
];

export const MODE_PARAMETER: Parameter = {
  name: 'mode',
  description: 'The mode, at most once. A mode in the body wins, whatever is here.',
  schema: { name: 'Mode', schema: ModeSchema },
};

export const BODY_DESCRIPTION = `At most 1 MB of JSON in UTF-8, nested at most ${NESTING_MAX} levels deep. Unknown fields are ignored.`;

/** Returns the routes `POST /v1/decisions` and `POST /v1/systemone`. */
export function decisionRoutes(services: DecisionRouteServices): readonly Route[] {
  return ENDPOINTS.map((endpoint) =>
    defineRoute({
      method: 'POST',
      path: endpoint.path,
      ...(endpoint.request_id_copy === undefined ? {} : { request_id_copy: endpoint.request_id_copy }),
      refusals: DECISION_CODES,
      operation: {
        summary: endpoint.summary,
        tag: 'Decisions',
        query: [MODE_PARAMETER],
        headers: [
          {
            name: IDEMPOTENCY_KEY_HEADER,
            description:
              'Requests with the same value and body within 24 hours are one decision, charged once. An addition to the specification.',
            schema: { name: 'IdempotencyKey', schema: IdempotencyKeySchema },
          },
        ],
        body: {
          description: BODY_DESCRIPTION,
          schemas: endpoint.bodies,
          examples: endpoint.examples.requests,
        },
        success: {
          description: 'A probability for every option of every question.',
          schemas: endpoint.responses,
          examples: endpoint.examples.answers,
        },
        asks_model: true,
      },
      handle: (request, context) => answer(services, endpoint, request, context),
    }),
  );
}

async function answer(
  services: DecisionRouteServices,
  { path, default_model }: DecisionEndpoint,
  request: Request,
  context: RequestContext,
): Promise<Response | Refused<DecisionCode>> {
  const key = await keyWithinBudget(services, request, context);
  if ('refusal' in key) return key;
  const query_mode = queryMode(context);
  const openai = path === '/v1/decisions' ? new OpenAiTranslation() : null;
  const idempotency_key = request.headers.get(IDEMPOTENCY_KEY_HEADER);
  const asked = { endpoint: path, default_model, ...key, query_mode, idempotency_key, openai };
  const { outcome, body_bytes } = await answerDecision(services, asked, request, context);
  if (outcome.result instanceof Refusal) spendRefusal(services, context, outcome.result, body_bytes);
  const step = context.span?.beginStep('response');
  const response = respond(outcome, openai, context, services.clock);
  step?.end();
  return response;
}

/**
 * Decides a request, and informs its context, the metrics and the trace; for every route that asks the
 * models. Never rejects for the client's fault: the outcome has the refusal.
 */
export async function answerDecision(
  services: DecisionRouteServices,
  { openai, reading: given, ...asked }: AskedBy,
  request: Request,
  context: RequestContext,
): Promise<{ readonly outcome: DecisionOutcome; readonly body_bytes: number }> {
  const reading = given ?? bodyReading(services, request, context, openai);
  const outcome = await decide(services, {
    idempotency_key: null,
    patience: null,
    ...asked,
    ...reading,
    request_id: context.request_id,
    signal: request.signal,
    span: context.span,
  });
  noteAsked(context, outcome);
  observe(services, outcome, context, (asked.patience ?? null) !== null);
  return { outcome, body_bytes: reading.body_bytes() };
}

/** Notes the caller, the model and the mode of an outcome in the context of its request, and in its trace. */
export function noteAsked(
  context: RequestContext,
  { caller, asked }: Pick<DecisionOutcome, 'caller' | 'asked'>,
): void {
  context.caller = caller;
  if (asked === undefined) return;
  context.model = asked.model;
  context.mode = asked.mode;
  context.span?.describe(asked);
}

/**
 * Reads the body of a request for decisions in either shape, for the key's organization, and counts its
 * bytes.
 */
export function bodyReading(
  services: Pick<DecisionRouteServices, 'body_limits'>,
  request: Request,
  context: Pick<RequestContext, 'onKnown'>,
  openai: OpenAiTranslation | null,
): BodyReading {
  const { readBody, body_bytes } = jsonReading(services, request, context);
  let sent_body: JsonValue | undefined;
  const read = async (organization_id: string) => {
    const body = await readBody(organization_id);
    if (body instanceof Refusal) return body;
    sent_body = body;
    return openai === null ? body : openai.request(body);
  };
  let reading: ReturnType<typeof read> | undefined;
  return {
    readBody: (organization_id) => {
      reading ??= read(organization_id);
      return reading;
    },
    sent_body: () => sent_body,
    body_bytes,
  };
}

/** Reads the body of a request, for the key's organization, and counts its bytes. `outer_level` is that of `readJson`. */
export function jsonReading(
  { body_limits }: Pick<DecisionRouteServices, 'body_limits'>,
  request: Request,
  context: Pick<RequestContext, 'onKnown'>,
  outer_level?: number,
) {
  let body_bytes = 0;
  const onReceived = (received_bytes: number) => {
    body_bytes = received_bytes;
  };
  return {
    readBody: (organization_id: string) => {
      context.onKnown();
      return readJsonBody(request, { organization_id }, body_limits, { onReceived, outer_level });
    },
    body_bytes: () => body_bytes,
  };
}

/**
 * Returns the mode of a query; null when it has none. Several, even equal ones, are an invalid mode, because
 * none is chosen by guess.
 */
export function queryMode({ url }: Pick<RequestContext, 'url'>): string | null {
  const modes = url.searchParams.getAll('mode');
  return modes.length === 0 ? null : modes.join(',');
}

/**
 * Reports a decision to the metrics and the trace, beside what they get for every request. A patient one waits on
 * purpose, for the rate limits and at the model: its times would hide those of clients who wait for answers. So would the
 * wait of 0 s of one that a full queue refused.
 */
function observe(
  { metrics, clock }: Pick<DecisionRouteServices, 'metrics' | 'clock'>,
  { result, asked, is_replayed, model_time }: DecisionOutcome,
  context: RequestContext,
  is_patient: boolean,
): void {
  const { started_ms, span } = context;
  if (asked === undefined) return;
  if (is_replayed === true) {
    context.is_replayed = true;
    metrics.decisionReplayed(asked);
  }
  if (model_time === undefined) return;
  if (!is_patient && model_time.has_slot) {
    const { queue_ms, model_ms } = model_time;
    const platform_ms = Math.max(0, clock.monotonic_ms() - started_ms - queue_ms - model_ms);
    metrics.decisionTimed({ ...asked, platform_ms, queue_ms, model_ms });
  }
  if (result instanceof Refusal) return;
  const { input_tokens, decisions, cost_usd } = result.usage;
  context.input_tokens = input_tokens;
  metrics.decisionCharged({
    ...asked,
    input_tokens,
    questions: decisions,
    cost_micros: microsOf(cost_usd),
  });
  span?.describe({ ...asked, input_tokens, questions: decisions });
}

/** Returns the response, with the headers of the outcome. */
function respond(
  outcome: DecisionOutcome,
  openai: OpenAiTranslation | null,
  context: RequestContext,
  clock: Clock,
): Response | Refused<DecisionCode> {
  const { result, rate } = outcome;
  const ignored_fields = openai?.ignoredFields(outcome.ignored_fields) ?? outcome.ignored_fields ?? [];
  const headers = headersOf({ ...outcome, ignored_fields }, context, clock);
  if (!(result instanceof Refusal)) {
    return jsonResponse(context.request_id, 200, openai?.decision(result) ?? result, headers);
  }
  const refusal = openai?.refusal(result) ?? result;
  return rate !== null && refusal.code === 'rate_limit_exceeded'
    ? { refusal, headers: { ...headers, ...requestRateHeaders(rate) } }
    : { refusal, headers: { ...headers, ...encodingHeaders(refusal) } };
}

/** Returns the header with the accepted codings, for a client that sent another one. */
export function encodingHeaders({ code }: Pick<Refusal, 'code'>): Readonly<Record<string, string>> {
  return code === 'unsupported_encoding' ? { 'accept-encoding': ACCEPTED_CODINGS } : {};
}

/** The header with the fields of a request that nothing read. An addition to the specification. */
const IGNORED_FIELDS_HEADER = 'tds-ignored-fields';

/**
 * Returns the headers of an outcome. One with a hold reached the model, and has all (contract: response headers). A
 * replay has those of the limits, and any other outcome none.
 */
export function headersOf(
  { rate, was_held, is_replayed, ignored_fields, record_tokens_left_out }: DecisionOutcome,
  { started_ms }: Pick<RequestContext, 'started_ms'>,
  clock: Clock,
): Readonly<Record<string, string>> {
  if (rate === null) return {};
  const unread = unreadHeaders({ ignored_fields, record_tokens_left_out });
  if (is_replayed === true) return { ...rateHeaders(rate), [REPLAYED_HEADER]: 'true', ...unread };
  if (!was_held) return {};
  const elapsed_ms = clock.monotonic_ms() - started_ms;
  return { ...rateHeaders(rate), 'service-processing-ms': elapsed_ms.toFixed(3), ...unread };
}

/** The unread parts of a request; absent where they are not known. */
interface UnreadParts {
  readonly ignored_fields?: readonly string[] | undefined;
  readonly record_tokens_left_out?: number | null | undefined;
}

/** Returns the unread parts of a request for an answer that has no headers of its own; only those that there are. */
export function unreadParts({ ignored_fields = [], record_tokens_left_out: left_out }: UnreadParts) {
  return {
    ignored_fields: ignored_fields.length === 0 ? undefined : ignoredFieldNames(ignored_fields),
    record_tokens_left_out: left_out === null || left_out === 0 ? undefined : left_out,
  };
}

/** Returns the headers about unread parts of a request, if any. */
export function unreadHeaders({
  ignored_fields = [],
  record_tokens_left_out = null,
}: UnreadParts): Readonly<Record<string, string>> {
  return {
    ...(ignored_fields.length === 0 ? {} : { [IGNORED_FIELDS_HEADER]: ignoredFieldsHeader(ignored_fields) }),
    ...((record_tokens_left_out ?? 0) === 0 ? {} : { [LEFT_OUT_HEADER]: String(record_tokens_left_out) }),
  };
}
