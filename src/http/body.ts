import type { JsonValue } from '../../native/plan/json.ts';
import { Refusal } from '../errors.ts';
import { JsonError, NESTING_MAX, readJson } from '../json/read-json.ts';

/** The largest body that is read: 1 MB (spec, "Limits"). */
export const BODY_BYTES_MAX = 1_048_576;

/** Bodies are as good as always smaller; reading one of this size takes about a millisecond. */
const LARGE_BODY_BYTES = 65_536;

/** How long a body may take to arrive; a client that sends slower holds a place and, at a stop, everybody else. */
const BODY_DEADLINE_MS = 60_000;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON value of a request's body, or `request_too_large` by Content-Length or by the bytes that came, or
 * `invalid_json`, which is also what text that is not UTF-8 gets, or `invalid_request` for text nested too deeply.
 */
export async function readJsonBody(
  request: Request,
  onReceived: (bytes: number) => void = () => {},
): Promise<JsonValue | Refusal> {
  const bytes = await readBytes(request, onReceived);
  if (bytes instanceof Refusal) return bytes;
  const value = parseJson(bytes);
  // What is done with a large value next is long work too: other requests have a turn between the two.
  if (bytes.byteLength >= LARGE_BODY_BYTES) await new Promise(setImmediate);
  return value;
}

/**
 * The bytes of a request's body, at most `BODY_BYTES_MAX` of them: `request_too_large` otherwise. `onReceived` is told
 * how many came, whatever became of them.
 */
export async function readBytes(
  request: Request,
  onReceived: (bytes: number) => void = () => {},
): Promise<Uint8Array | Refusal> {
  const announced = Number(request.headers.get('content-length') ?? Number.NaN);
  // A Content-Length beside Transfer-Encoding says nothing about the size (RFC 9112, 6.3).
  if (announced > BODY_BYTES_MAX && !request.headers.has('transfer-encoding')) {
    return new Refusal('request_too_large');
  }
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  const reader = request.body.getReader();
  let is_late = false;
  const deadline = setTimeout(() => {
    is_late = true;
    reader.cancel().catch(() => {});
  }, BODY_DEADLINE_MS);
  let size = 0;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.byteLength;
      if (size > BODY_BYTES_MAX) {
        reader.cancel().catch(() => {});
        return new Refusal('request_too_large');
      }
      chunks.push(read.value);
    }
  } catch {
    return new Refusal('invalid_json', { message: 'The request body ended early.' });
  } finally {
    clearTimeout(deadline);
    onReceived(size);
  }
  if (is_late) return new Refusal('invalid_json', { message: 'The request body did not arrive in time.' });
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, size);
}

/**
 * JSON text in UTF-8 as a value (see `readJson`): `invalid_json` for what is none, and `invalid_request` for text that
 * is nested too deeply, whatever follows.
 */
export function parseJson(bytes: Uint8Array): JsonValue | Refusal {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return new Refusal('invalid_json', { message: 'The request body is not valid UTF-8.' });
  }
  try {
    return readJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    if (!error.too_deep) return new Refusal('invalid_json');
    return new Refusal('invalid_request', {
      message: `The request body is nested deeper than ${NESTING_MAX} levels.`,
    });
  }
}
