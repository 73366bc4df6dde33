import type { JsonValue } from '../../native/plan/json.ts';
import { Refusal } from '../errors.ts';
import { type BodyLimits, readBytes } from './body-bytes.ts';

/** Deeper than any record; parsing much deeper text would use up the stack. */
const NESTING_MAX = 1_000;

/** The shortest integer that a double can round: 2^53 has 16 digits. */
const LONG_INTEGER_LENGTH = 16;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON value of a request's body, or what `readBytes` refuses it with, or `invalid_json`, which is also what text
 * that is not UTF-8 gets.
 */
export async function readJsonBody(
  request: Request,
  owner: string,
  limits: BodyLimits,
): Promise<JsonValue | Refusal> {
  const bytes = await readBytes(request, owner, limits);
  if (bytes instanceof Refusal) return bytes;
  return parseJson(bytes);
}

/** JSON text in UTF-8 as a value. Numbers that a double would change are kept as the text that they were written as. */
export function parseJson(bytes: Uint8Array): JsonValue | Refusal {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return new Refusal('invalid_json', { message: 'The request body is not valid UTF-8.' });
  }
  const scan = scanJson(text);
  if (scan === 'too_deep') {
    return new Refusal('invalid_json', {
      message: `The request body is nested deeper than ${NESTING_MAX} levels.`,
    });
  }
  try {
    return JSON.parse(withQuoted(text, scan));
  } catch {
    return new Refusal('invalid_json');
  }
}

/** Where a text has an integer that a double would round. */
interface LongInteger {
  readonly start: number;
  readonly end: number;
}

/**
 * The integers of JSON text that a double would round, but for those that are fields of the body themselves: a model
 * or a record that is a number must stay one, to be refused as such. `too_deep` when it is nested deeper than is read.
 * One pass over the text, because whoever has a key can send a megabyte of it for nothing.
 */
function scanJson(text: string): readonly LongInteger[] | 'too_deep' {
  const found: LongInteger[] = [];
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = endOfString(text, index);
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > NESTING_MAX) return 'too_deep';
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2d || isDigit(code)) {
      const end = endOfNumber(text, index);
      if (depth > 1 && end - index >= LONG_INTEGER_LENGTH && isRounded(text, index, end)) {
        found.push({ start: index, end });
      }
      index = end - 1;
    }
  }
  return found;
}

/** The text with those integers as strings: the model reads text anyway. */
function withQuoted(text: string, integers: readonly LongInteger[]): string {
  if (integers.length === 0) return text;
  const parts: string[] = [];
  let from = 0;
  for (const { start, end } of integers) {
    parts.push(text.slice(from, start), '"', text.slice(start, end), '"');
    from = end;
  }
  return parts.join('') + text.slice(from);
}

/** The index of the quote that ends the string that begins at `start`, or the text's end. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) return index;
    if (code === BACKSLASH) index += 1;
  }
  return text.length;
}

/** The index after the digits, signs, points and exponents that begin at `start`. */
function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    const is_part =
      isDigit(code) || code === 0x2e || code === 0x2b || code === 0x2d || (code | 0x20) === 0x65;
    if (!is_part) break;
  }
  return end;
}

/** An integer as JSON writes one, that a double would change, and not the (unquoted, so invalid) name of a field. */
function isRounded(text: string, start: number, end: number): boolean {
  const number = text.slice(start, end);
  if (!/^-?[1-9]\d*$/.test(number)) return false;
  const double = Number(number);
  // Of hundreds of digits a double may make infinity, which has no digits to compare.
  if (Number.isFinite(double) && BigInt(double).toString() === number) return false;
  let next = end;
  while (' \t\r\n'.includes(text.charAt(next)) && next < text.length) next += 1;
  return text.charAt(next) !== ':';
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
