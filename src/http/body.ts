import { readsTextOnly } from '../decisions/images.ts';
import { Refusal } from '../errors/errors.ts';
import type { JsonValue } from '../json/json-value.ts';
import { JsonError, type JsonPlace, NESTING_MAX, readJson } from '../json/read-json.ts';
import { type BodyLimits, type BodyRefusal, type BodySender, readBytes } from './body-bytes.ts';
import { contentCodingOf } from './content-encoding.ts';

/** The size that nearly all bodies are below. Reading such a body takes about a millisecond. */
const LARGE_BODY_BYTES = 65_536;

interface BodyOptions {
  readonly onReceived?: (bytes: number) => void;
  readonly outer_level?: number | undefined;
}

/** The reason why the bytes are not a value. */
type JsonRefusal = Refusal<'invalid_json' | 'invalid_request'>;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads the JSON value of a request's body. Refuses as `readBytes` does, and with `invalid_json` for text
 * that is not JSON or not UTF-8. Refuses with `invalid_request` text that is nested too deeply, and a
 * multipart body. Decompresses a body first, and refuses unknown compressions with `unsupported_encoding`.
 * `onReceived` gets the number of bytes that arrived; `outer_level` is that of `readJson`.
 */
export async function readJsonBody(
  request: Request,
  sender: BodySender,
  limits: BodyLimits,
  { onReceived, outer_level }: BodyOptions = {},
): Promise<JsonValue | BodyRefusal | JsonRefusal | Refusal<'unsupported_encoding'>> {
  const coding = contentCodingOf(request.headers);
  if (coding instanceof Refusal) return coding;
  const bytes = await readBytes(request, sender, limits, { coding, onReceived });
  if (bytes instanceof Refusal) return bytes;
  const value = parseJson(bytes, null, outer_level);
  const is_not_json = value instanceof Refusal && value.code === 'invalid_json';
  if (is_not_json && isMultipart(request.headers)) return readsTextOnly(null);
  // The next step with a large value is long as well, so other requests get a turn in between.
  if (bytes.byteLength >= LARGE_BODY_BYTES) await new Promise(setImmediate);
  return value;
}

/** Returns true for a multipart content type, in which some clients send images. */
function isMultipart(headers: Headers): boolean {
  return /^\s*multipart\//i.test(headers.get('content-type') ?? '');
}

/**
 * Parses JSON text in UTF-8 (see `readJson`). Refuses other text with `invalid_json`, and text that is nested
 * too deeply with `invalid_request`, whatever follows. `line` is the name of a text that is one line.
 */
export function parseJson(
  bytes: Uint8Array,
  line: string | null = null,
  outer_level = 1,
): JsonValue | JsonRefusal {
  const name = line ?? 'The request body';
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    // The refusal has the complete cause, which is the client's fault.
    return new Refusal('invalid_json', { message: `${name} is not valid UTF-8.` });
  }
  try {
    return readJson(text, { keeps_outer_numbers: true, outer_level });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    if (error.place !== null) {
      const message = line === null ? notJson(text, error.place) : lineNotJson(line, error.place);
      return new Refusal('invalid_json', { message });
    }
    return new Refusal('invalid_request', {
      message: `${name} is nested deeper than ${NESTING_MAX} levels.`,
    });
  }
}

/** Returns a message with the place where the text stops being JSON. Quotes nothing of the text. */
function notJson(text: string, { line, column, is_end }: JsonPlace): string {
  if (text === '') return 'The request body is empty: send a JSON object.';
  const place = `line ${line}, column ${column}`;
  return is_end
    ? `The request body is not valid JSON: it ends too early, at ${place}.`
    : `The request body is not valid JSON at ${place}.`;
}

function lineNotJson(line: string, { column, is_end }: JsonPlace): string {
  return `${line} is not valid JSON${is_end ? ': it ends too early,' : ''} at column ${column}.`;
}
