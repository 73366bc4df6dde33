import { Value } from '@sinclair/typebox/value';
import { ErrorResponseSchema } from '../../http/schemas.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { readJson } from '../../json/read-json.ts';
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
  readonly idempotency_key: string | null;
  /** Ends the request. */
  readonly signal: AbortSignal;
}

/**
 * Sends lines as the service takes them, and yields its answers as they come. Throws `BatchEnded` where the service ends
 * the batch, after all answers. Throws `ConnectionLost`, and `CommandFailed` where something else answers.
 */
export async function* sendBatch(
  { service, key, idempotency_key, signal }: BatchTarget,
  lines: AsyncIterator<JsonObject<JsonValue>>,
): AsyncGenerator<JsonObject<JsonValue>> {
  const response = await connected(
    fetch(new URL('/v1/decisions/batch', service), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/x-ndjson',
        ...(idempotency_key === null ? {} : { 'idempotency-key': idempotency_key }),
      },
      body: streamOf(lines),
      signal,
      // The records are for this address only.
      redirect: 'manual',
    }),
  );
  if (response.status !== 200) throw await refusalOf(response, service);
  for await (const text of linesOf(response)) {
    if (text === '') continue;
    const answer = readJson(text);
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

function streamOf(lines: AsyncIterator<JsonObject<JsonValue>>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await lines.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(`${writeJson(value)}\n`));
      },
    },
    { highWaterMark: 0 },
  );
}

/** Yields the lines of a response. A last line without an end is one that was cut. */
async function* linesOf({ body }: Response): AsyncGenerator<string> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await connected(reader.read());
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') throw new ConnectionLost('the response was cut');
}

/** The sentence that names a line of this request, which is no line of the file. */
const WHERE_TO_GO_ON = / The batch ends here: .*$/;

/** Returns the end of the batch that a last line without an id tells of; null for every other line. */
function endOf(answer: JsonObject<JsonValue>): BatchEnded | null {
  const error = answer.get('error');
  if (answer.get('id') !== null || !isJsonObject(error)) return null;
  return new BatchEnded(String(error.get('code')), String(error.get('message')).replace(WHERE_TO_GO_ON, ''));
}

async function refusalOf(response: Response, service: string): Promise<Error> {
  const document = await connected(jsonOrNull(response));
  if (!Value.Check(ErrorResponseSchema, document)) return notThisService(service, response.status);
  const { code, message } = document.error;
  const retry_after = response.headers.get('retry-after');
  return new BatchEnded(code, message, retry_after === null ? null : Number(retry_after));
}

function notThisService(service: string, status: number): CommandFailed {
  return new CommandFailed(`What answers at ${service} is not this service (HTTP ${status}).`);
}
