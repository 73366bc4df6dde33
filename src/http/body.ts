import type { JsonValue } from '../../native/plan/json.ts';
import { isJsonObject } from '../decisions/request.ts';
import { Refusal } from '../errors.ts';

/** The largest body that is read: 1 MB (spec, "Limits"). */
export const BODY_BYTES_MAX = 1_048_576;

/** Deeper than any record; parsing much deeper text would use up the stack. */
const NESTING_MAX = 1_000;

/** The shortest integer that a double can round: 2^53 has 16 digits. */
const LONG_NUMBER = /\d{16}/;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON value of a request's body, or `request_too_large` by Content-Length or by the bytes that came, or
 * `invalid_json`, which is also what text that is not UTF-8 gets.
 */
export async function readJsonBody(request: Request): Promise<JsonValue | Refusal> {
  const bytes = await readBytes(request);
  if (bytes instanceof Refusal) return bytes;
  return parseJson(bytes);
}

/** The bytes of a request's body, at most `BODY_BYTES_MAX` of them: `request_too_large` otherwise. */
export async function readBytes(request: Request): Promise<Uint8Array | Refusal> {
  const announced = Number(request.headers.get('content-length') ?? Number.NaN);
  // A Content-Length beside Transfer-Encoding says nothing about the size (RFC 9112, 6.3).
  if (announced > BODY_BYTES_MAX && !request.headers.has('transfer-encoding')) {
    return new Refusal('request_too_large');
  }
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body) {
      size += chunk.byteLength;
      if (size > BODY_BYTES_MAX) return new Refusal('request_too_large');
      chunks.push(chunk);
    }
  } catch {
    return new Refusal('invalid_json', { message: 'The request body ended early.' });
  }
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, size);
}

/** JSON text in UTF-8 as a value. Numbers that a double would change are kept as the text that they were written as. */
export function parseJson(bytes: Uint8Array): JsonValue | Refusal {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return new Refusal('invalid_json', { message: 'The request body is not valid UTF-8.' });
  }
  if (isNestedTooDeeply(text)) {
    return new Refusal('invalid_json', {
      message: `The request body is nested deeper than ${NESTING_MAX} levels.`,
    });
  }
  try {
    return LONG_NUMBER.test(text) ? parseExactly(text) : JSON.parse(text);
  } catch {
    return new Refusal('invalid_json');
  }
}

/**
 * The value with every long integer as its text, but for those that are fields of the body themselves: a model or a
 * record that is a number must stay one, to be refused as such.
 */
function parseExactly(text: string): JsonValue {
  const exact: JsonValue = JSON.parse(text, keepExactNumber);
  const rounded: JsonValue = JSON.parse(text);
  if (!isJsonObject(exact) || !isJsonObject(rounded)) return exact;
  const fields = Object.entries(exact).map(([name, value]) => {
    const original = rounded[name];
    return [name, typeof original === 'number' ? original : value] as const;
  });
  return Object.fromEntries(fields);
}

/** A reviver that gives an integer beyond a double's precision as its source text: the model reads text anyway. */
function keepExactNumber(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?\d+$/.test(source) ? source : value;
}

function isNestedTooDeeply(text: string): boolean {
  let depth = 0;
  let in_string = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (in_string) {
      if (code === 0x5c) index += 1;
      else if (code === 0x22) in_string = false;
    } else if (code === 0x22) in_string = true;
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > NESTING_MAX) return true;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return false;
}
