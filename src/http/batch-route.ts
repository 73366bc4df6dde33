import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import { BatchLines } from '../decisions/batch/lines.ts';
import { AnsweredLineFields, AnsweredLineSchema, BatchLineSchema } from '../decisions/batch/schemas.ts';
import type { AskedKey, KnownCaller } from '../decisions/call.ts';
import { authenticate, checkRequest } from '../decisions/check-request.ts';
import { DECISION_CODES, type DecisionCode } from '../decisions/refusal.ts';
import { IdempotencyKeySchema, ModeSchema } from '../decisions/schemas.ts';
import { overloaded, Refusal } from '../errors/errors.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import type { BodyBudgetLimits } from '../limits/body-budget.ts';
import {
  BATCH_BYTES,
  BATCH_PATH,
  type BatchServices,
  BatchStream,
  LINES_MAX,
  type OpenedBatch,
  type ReadLine,
  readLine,
  tooManyLines,
  waitForRefusals,
} from './batch-stream.ts';
import { type BodyLine, bodyLines } from './body-lines.ts';
import { contentCodingOf } from './content-encoding.ts';
import type { RequestContext } from './context.ts';
import { BATCH_ANSWERS, BATCH_REQUESTS } from './decision-examples.ts';
import { encodingHeaders, IDEMPOTENCY_KEY_HEADER, queryMode } from './decision-routes.ts';
import { keyWithinBudget, spendRefusal, spendUnpaid } from './refusal-gate.ts';
import { REQUEST_ID_HEADER } from './responses.ts';
import { defineRoute, type Refused, type Route } from './route.ts';
import { ErrorResponseSchema } from './schemas.ts';
import { streamedText } from './streamed-text.ts';

/** Lines are records, one after the other (https://github.com/ndjson/ndjson-spec). */
const NDJSON = 'application/x-ndjson';

/** Batches that an organization may have at once, and all together, by the memory that each may take. */
export const BATCH_LINES: BodyBudgetLimits = {
  total_bytes: 24 * BATCH_BYTES,
  owner_bytes: 4 * BATCH_BYTES,
  body_bytes_min: 0,
};

/** Skipped bytes are counted in steps, so that many small pieces are no cheaper than a large one. */
const COUNTED_BYTES = 65_536;

export const BatchAnswerSchema = Type.Union([
  AnsweredLineSchema,
  Type.Object({ ...AnsweredLineFields, error: ErrorResponseSchema.properties.error }),
]);

/** `POST /v1/decisions/batch`: a request on each line of the body, and an answer on each line of the response. */
export function batchRoute(services: BatchServices): Route {
  return defineRoute({
    method: 'POST',
    path: BATCH_PATH,
    refusals: DECISION_CODES,
    operation: {
      summary: 'Decide typed questions about many records, one on a line',
      tag: 'Decisions',
      query: [
        {
          name: 'mode',
          description: 'The mode of lines that have none, at most once.',
          schema: { name: 'Mode', schema: ModeSchema },
        },
      ],
      headers: [
        {
          name: IDEMPOTENCY_KEY_HEADER,
          description:
            'Lines with the same value, id and content within 24 hours are one decision, charged once. Lines without an id are not.',
          schema: { name: 'IdempotencyKey', schema: IdempotencyKeySchema },
        },
      ],
      body: {
        description: `Lines of JSON in UTF-8 (NDJSON), at most ${LINES_MAX} of at most 1 MB each, read as they come. An addition to the specification.`,
        schemas: [{ name: 'BatchLine', schema: BatchLineSchema }],
        examples: BATCH_REQUESTS,
        media_type: NDJSON,
      },
      success: {
        description: 'A line for each record, in the order of completion: its answer, or its error.',
        schemas: [{ name: 'BatchAnswer', schema: BatchAnswerSchema }],
        examples: BATCH_ANSWERS,
        media_type: NDJSON,
      },
      asks_model: false,
    },
    handle: (request, context) => answer(services, request, context),
  });
}

async function answer(
  services: BatchServices,
  request: Request,
  context: RequestContext,
): Promise<Response | Refused<DecisionCode>> {
  const key = await keyWithinBudget(services, request, context);
  if ('refusal' in key) return key;
  const answered = await answerBatch(services, key, request, context);
  if (!(answered instanceof Refusal)) return answered;
  spendRefusal(services, context, answered);
  return { refusal: answered, headers: encodingHeaders(answered) };
}

/**
 * Returns the response to a batch, or its refusal, for every route that takes one. Lines are read and answered as the
 * response is taken. Those that are refused count against the key.
 */
export async function answerBatch(
  services: BatchServices,
  key: AskedKey,
  request: Request,
  context: RequestContext,
): Promise<Response | Refusal<DecisionCode>> {
  const opened = await openBatch(services, key, request, context);
  return opened instanceof Refusal ? opened : streamed(new BatchStream(services, opened), context);
}

/** Returns the batch once its first line is read, or the refusal for an ordinary error. */
async function openBatch(
  services: BatchServices,
  asked: AskedKey,
  request: Request,
  context: RequestContext,
): Promise<OpenedBatch | Refusal<DecisionCode>> {
  const { batch_lines, body_limits, draining } = services;
  const known = await authenticate(services, { ...asked, request_id: context.request_id });
  const caller = known.result;
  context.caller = known.caller;
  if (caller instanceof Refusal) return caller;
  const coding = contentCodingOf(request.headers);
  if (coding instanceof Refusal) return coding;
  const query_mode = queryMode(context);
  if (query_mode !== null && !Value.Check(ModeSchema, query_mode)) {
    return new Refusal('invalid_mode', { param: 'mode' });
  }
  const idempotency_key = request.headers.get(IDEMPOTENCY_KEY_HEADER);
  if (idempotency_key !== null && !Value.Check(IdempotencyKeySchema, idempotency_key)) {
    return new Refusal('invalid_idempotency_key');
  }
  const { organization_id } = caller;
  if (!batch_lines.take(organization_id, BATCH_BYTES)) return overloaded('batches');
  const giveMemoryBack = () => batch_lines.give(organization_id, BATCH_BYTES);
  context.onKnown(true);
  const patience = AbortSignal.any([request.signal, draining.signal]);
  const ended = new AbortController();
  const endReading = () => ended.abort();
  const lines = bodyLines(request, {
    coding,
    deadline_ms: body_limits.deadline_ms,
    lines_max: LINES_MAX,
    onSkipped: skippedBytes(services, caller, context, patience),
    signal: AbortSignal.any([patience, ended.signal]),
  });
  const unread = {
    request,
    context,
    key: asked.key,
    query_mode,
    idempotency_key,
    caller,
    patience,
    endReading,
    giveMemoryBack,
  };
  let first: Awaited<ReturnType<typeof readFirst>> | null = null;
  try {
    first = await readFirst(services, unread, lines);
    return first instanceof Refusal ? first : { ...unread, ...first, rest: lines };
  } finally {
    if (first === null || first instanceof Refusal) {
      endReading();
      giveMemoryBack();
    }
  }
}

/** Counts the bytes of lines that are blank or too long against the refusals of the key, and waits for those. */
function skippedBytes(
  services: BatchServices,
  caller: KnownCaller,
  context: RequestContext,
  patience: AbortSignal,
): (bytes: number) => Promise<void> {
  let uncounted = 0;
  return async (bytes) => {
    uncounted += bytes;
    if (uncounted < COUNTED_BYTES) return;
    spendRefusal(services, context, new Refusal('request_too_large'), uncounted);
    uncounted = 0;
    await waitForRefusals(services, caller, patience);
  };
}

/** Returns the first line, or the refusal where it cannot be read, or a header asks nothing that can be answered. */
async function readFirst(
  services: BatchServices,
  asked: Pick<OpenedBatch, 'caller' | 'query_mode' | 'context' | 'patience'>,
  lines: AsyncGenerator<BodyLine>,
): Promise<Pick<OpenedBatch, 'first' | 'lines'> | Refusal<DecisionCode>> {
  const line = await firstLine(lines);
  if (line instanceof Refusal) return line;
  if (line === null) return asked.patience.aborted ? overloaded('stopping') : emptyBatch();
  const first = readLine(line, 'The first line');
  const opened = await openedBy(services, asked, first);
  // The refusal itself is counted with those of every route. A failure of ours costs nothing.
  if (opened instanceof Refusal && opened.status < 500) {
    spendUnpaid(services, asked.caller, { refusals: 0, body_bytes: first.bytes });
  }
  return opened;
}

/** Stands for the questions of a header that has none, because each line has its own. */
const OWN_QUESTIONS = new JsonObject<JsonValue>(
  ['own'],
  [new JsonObject<JsonValue>(['type', 'instructions'], ['noul', 'own'])],
);

/** Returns the lines of the batch that a first line opens, or the refusal of that line. */
async function openedBy(
  services: BatchServices,
  { caller, query_mode, context: { request_id } }: Pick<OpenedBatch, 'caller' | 'query_mode' | 'context'>,
  first: ReadLine,
): Promise<Pick<OpenedBatch, 'first' | 'lines'> | Refusal<DecisionCode>> {
  if (first.value instanceof Refusal) return first.value;
  if (!isJsonObject(first.value)) {
    return new Refusal('invalid_request', { message: 'Each line of a batch is a JSON object.', status: 400 });
  }
  const batch = new BatchLines(first.value);
  if (!batch.has_header) return { first, lines: batch };
  // No line has come yet, so that a mistake here is told once.
  const { value } = first;
  const asked = value.get('questions') === undefined ? value.with('questions', OWN_QUESTIONS) : value;
  const body = asked.with('state', '');
  const call = {
    request_id,
    default_model: DEFAULT_MODEL,
    query_mode,
    readBody: () => Promise.resolve(body),
  };
  const checked = await checkRequest(services, call, caller);
  if (checked instanceof Refusal) return checked;
  return checked.request.rejection ?? { first, lines: batch };
}

/** Returns the first line that is not blank, null where there is none, or the refusal of an unreadable body. */
async function firstLine(lines: AsyncGenerator<BodyLine>): Promise<BodyLine | Refusal<DecisionCode> | null> {
  try {
    const { value, done } = await lines.next();
    if (done === true) return null;
    return value.number > LINES_MAX ? tooManyLines() : value;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function streamed(batch: BatchStream, { request_id }: RequestContext): Response {
  const answers = batch.answers();
  const finish = async () => {
    // The client is gone, and a stop waits for what is still under way.
    for await (const _ of answers);
  };
  return streamedText(answers, finish, {
    'content-type': NDJSON,
    [REQUEST_ID_HEADER]: request_id,
    // Proxies that keep responses back until they are whole would hold the client up (nginx).
    'x-accel-buffering': 'no',
  });
}

function emptyBatch(): Refusal<'invalid_json'> {
  return new Refusal('invalid_json', {
    message: 'The request body is empty: send a JSON object on each line.',
  });
}
