import { Value } from '@sinclair/typebox/value';
import { whyEnded } from '../../decisions/batch/ending.ts';
import { ErrorResponseSchema } from '../../http/schemas.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { readJsonOr } from '../../json/read-json.ts';
import { textLines } from '../../json/text-lines.ts';
import { writeJson } from '../../json/write-json.ts';
import { CommandFailed } from '../command-failed.ts';
import { jsonOrNull } from '../json-body.ts';

/** A batch that the service has refused, or ended before its last line. */
export class BatchEnded extends Error {
  override readonly name = 'BatchEnded';
  constructor(
    readonly code: string,
    message: string,
    readonly retry_after_s: number | null = null,
  ) {
    super(message);
  }
}

/** A connection that broke off, or never came about. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** The service to which a batch is sent, and who sends it. */
export interface BatchTarget {
  readonly service: string;
  readonly key: string;
  /** Lines that were charged in an earlier request with this key are answered again without a charge. */
  readonly idempotency_key: string;
  /** Ends the request. */
  readonly signal: AbortSignal;
}

/** A line of the request; null for an empty one, which the service skips. */
export type SentLine = JsonObject<JsonValue> | null;

/**
 * Sends lines as the service takes them, once the first one is there, and yields its answers as they come. Throws
 * `BatchEnded` where the service ends the batch, after all answers. Throws `ConnectionLost`, and `CommandFailed` where
 * something else answers.
 */
export async function* sendBatch(
  { service, key, idempotency_key, signal }: BatchTarget,
  lines: AsyncIterator<SentLine>,
): AsyncGenerator<JsonObject<JsonValue>> {
  // The service ends a request that is silent for a minute.
  const first = await lines.next();
  const response = await connected(
    fetch(new URL('/v1/decisions/batch', service), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/x-ndjson',
        'idempotency-key': idempotency_key,
      },
      body: streamOf(first, lines),
      signal,
      // The records are for this address only.
      redirect: 'manual',
    }),
  );
  if (response.status !== 200) throw await refusalOf(response, service);
  for await (const text of linesOf(response)) {
    if (text === '') continue;
    const answer = readJsonOr(text, undefined);
    if (!isJsonObject(answer)) throw notThisService(service, response.status);
    const ended = endOf(answer);
    if (ended !== null) throw ended;
    yield answer;
  }
}

/** Resolves as `work` does. Rejects with `ConnectionLost` where the connection fails. */
async function connected<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw new ConnectionLost('the connection was lost', { cause: error });
  }
}

function streamOf(
  first: IteratorResult<SentLine>,
  lines: AsyncIterator<SentLine>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let read: IteratorResult<SentLine> | null = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = read ?? (await lines.next());
        read = null;
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value === null ? '\n' : `${writeJson(value)}\n`));
      },
    },
    { highWaterMark: 0 },
  );
}

/** Yields the lines of a response. A last line without an end is one that was cut. */
async function* linesOf(response: Response): AsyncGenerator<string> {
  const rest = yield* textLines(piecesOf(response));
  if (rest !== '') throw new ConnectionLost('the response was cut');
}

async function* piecesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  for (;;) {
    const { value, done } = await connected(reader.read());
    if (done) return;
    yield value;
  }
}

/** Returns the end of the batch that a last line tells of; null for every other line, also one whose id was not read. */
function endOf(answer: JsonObject<JsonValue>): BatchEnded | null {
  const error = answer.get('error');
  if (answer.get('id') !== null || !isJsonObject(error)) return null;
  // Where to go on is a line of this request, which is none of the file.
  const why = whyEnded(String(error.get('message')));
  return why === null ? null : new BatchEnded(String(error.get('code')), why);
}

async function refusalOf(response: Response, service: string): Promise<Error> {
  const document = await connected(jsonOrNull(response));
  if (!Value.Check(ErrorResponseSchema, document)) {
    // So a proxy answers while the service behind it is started again.
    if (response.status >= 500) return new ConnectionLost(`a proxy answered with HTTP ${response.status}`);
    return notThisService(service, response.status);
  }
  const { code, message } = document.error;
  const retry_after = response.headers.get('retry-after');
  return new BatchEnded(code, message, retry_after === null ? null : Number(retry_after));
}

function notThisService(service: string, status: number): CommandFailed {
  return new CommandFailed(`What answers at ${service} is not this service (HTTP ${status}).`);
}
