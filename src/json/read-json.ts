import { StringTable } from '../hashing/string-table.ts';
import { JsonObject, type JsonValue } from './json-value.ts';

/** The most levels of objects and arrays in a text: 64 for a record, and the body around it. */
export const NESTING_MAX = 65;

/** The length of the shortest integer that a double may round: 2^53 has 16 digits. */
const LONG_INTEGER_LENGTH = 16;

/** The most names of an object that are compared with each other; larger objects use a hash. */
const FEW_NAMES = 8;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const ZERO = 0x30;
const MINUS = 0x2d;

const ESCAPES: ReadonlyMap<number, string> = new Map(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(
    ([letter, meaning]) => [letter.charCodeAt(0), meaning],
  ),
);

const NO_VALUES: readonly JsonValue[] = [];
const EMPTY_OBJECT = new JsonObject<JsonValue>([], NO_VALUES);

/**
 * The place where a text stops being JSON. Lines and columns count from 1, columns in UTF-16 units as in
 * editors.
 */
export interface JsonPlace {
  readonly line: number;
  readonly column: number;
  /** True if the text ends there, before its value does. */
  readonly is_end: boolean;
}

/**
 * The text is not JSON, or is nested deeper than `NESTING_MAX` levels (`too_deep`). The message never quotes
 * the text.
 */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  constructor(
    readonly too_deep: boolean,
    /** Null for a text that is nested too deeply. */
    readonly place: JsonPlace | null = null,
  ) {
    super(too_deep ? `nested deeper than ${NESTING_MAX} levels` : 'not valid JSON');
  }
}

/** How a text is read. */
export interface JsonReading {
  /**
   * True for a request: the fields of its outermost object stay numbers, because a record that is a number must be
   * refused as one.
   */
  readonly keeps_outer_numbers?: boolean;
  /** The level of the object with the fields of the request; 1, the outermost, by default. */
  readonly outer_level?: number;
}

/**
 * Returns the value of a JSON text, as strictly as `JSON.parse`. Of equal names in an object, the last value
 * counts, in the place of the first. Integers that a double would change become their text, and so does any
 * number beyond all doubles.
 *
 * Takes time proportional to the length of the text, whatever its content. Throws `JsonError`.
 */
export function readJson(text: string, reading: JsonReading = {}): JsonValue {
  const { keeps_outer_numbers = false, outer_level = 1 } = reading;
  return new Reader(text, keeps_outer_numbers ? outer_level : -1).document();
}

/** Returns the value of a JSON text as `readJson` does, or `other` for any other text. */
export function readJsonOr<Other>(text: string, other: Other): JsonValue | Other {
  try {
    return readJson(text);
  } catch (error) {
    if (error instanceof JsonError) return other;
    throw error;
  }
}

class Reader {
  private at = 0;
  private depth = 0;
  private large_objects = 0;
  /**
   * The names of large objects. For each name, the number of the last such object that has it, and its place
   * there.
   */
  private names: StringTable | undefined;
  private readonly last_object: number[] = [];
  private readonly last_place: number[] = [];

  constructor(
    private readonly text: string,
    /** Numbers stay numbers to this level; a number alone is at level 0. */
    private readonly numbers_level: number,
  ) {}

  document(): JsonValue {
    const value = this.value();
    this.skipSpace();
    if (this.at < this.text.length) this.fail();
    return value;
  }

  private fail(at = this.at): never {
    throw new JsonError(false, placeOf(this.text, at));
  }

  private skipSpace(): void {
    while (isSpace(this.text.charCodeAt(this.at))) this.at += 1;
  }

  /** Skips space, and the character if it comes next. Returns true if it did. */
  private skip(character: number): boolean {
    this.skipSpace();
    if (this.text.charCodeAt(this.at) !== character) return false;
    this.at += 1;
    return true;
  }

  private value(): JsonValue {
    this.skipSpace();
    const code = this.text.charCodeAt(this.at);
    if (code === QUOTE) return this.string();
    if (code === OPEN_BRACE) return this.object();
    if (code === OPEN_BRACKET) return this.array();
    if (code === MINUS || isDigit(code)) return this.number();
    if (this.word('true')) return true;
    if (this.word('false')) return false;
    if (this.word('null')) return null;
    return this.fail();
  }

  private word(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  private enter(): void {
    this.at += 1;
    this.depth += 1;
    if (this.depth > NESTING_MAX) throw new JsonError(true);
  }

  private array(): JsonValue {
    this.enter();
    if (this.skip(CLOSE_BRACKET)) {
      this.depth -= 1;
      return NO_VALUES;
    }
    const items = [this.value()];
    while (this.skip(COMMA)) items.push(this.value());
    if (!this.skip(CLOSE_BRACKET)) this.fail();
    this.depth -= 1;
    return items;
  }

  private object(): JsonValue {
    this.enter();
    if (this.skip(CLOSE_BRACE)) {
      this.depth -= 1;
      return EMPTY_OBJECT;
    }
    const names: string[] = [];
    const values: JsonValue[] = [];
    do {
      this.skipSpace();
      if (this.text.charCodeAt(this.at) !== QUOTE) this.fail();
      names.push(this.string());
      if (!this.skip(COLON)) this.fail();
      values.push(this.value());
    } while (this.skip(COMMA));
    if (!this.skip(CLOSE_BRACE)) this.fail();
    this.depth -= 1;
    return this.objectOf(names, values);
  }

  /**
   * Returns the object of these members; the value of a repeated name moves to the first one's place. It
   * keeps the arrays.
   */
  private objectOf(names: string[], values: JsonValue[]): JsonObject<JsonValue> {
    const is_large = names.length > FEW_NAMES;
    this.large_objects += is_large ? 1 : 0;
    let kept = 0;
    let repeated: string | null = null;
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index] ?? '';
      // Names from `kept` on are copies of earlier ones, or not processed yet.
      const place = is_large ? this.placeOf(name, kept) : Math.min(names.indexOf(name), kept);
      names[place] = name;
      values[place] = values[index] ?? null;
      if (place === kept) kept += 1;
      else repeated ??= name;
    }
    names.length = kept;
    values.length = kept;
    return new JsonObject(names, values, repeated);
  }

  /** Returns the place of the name in the current large object; `end` for a new name. */
  private placeOf(name: string, end: number): number {
    this.names ??= new StringTable();
    const known = this.names.intern(name);
    if (this.last_object[known] === this.large_objects) return this.last_place[known] ?? end;
    this.last_object[known] = this.large_objects;
    this.last_place[known] = end;
    return end;
  }

  private string(): string {
    const { text } = this;
    const start = this.at + 1;
    for (let at = start; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.at = at + 1;
        return text.slice(start, at);
      }
      if (code === BACKSLASH) return this.escapedString(start, at);
      if (code < 0x20) this.fail(at);
    }
    return this.fail(text.length);
  }

  /** Returns the string from `start`, whose first backslash is at `backslash`. */
  private escapedString(start: number, backslash: number): string {
    const { text } = this;
    const parts = [text.slice(start, backslash)];
    let part_start = backslash;
    for (let at = backslash; at < text.length; ) {
      const code = text.charCodeAt(at);
      if (code < 0x20) this.fail(at);
      if (code !== QUOTE && code !== BACKSLASH) {
        at += 1;
        continue;
      }
      if (at > part_start) parts.push(text.slice(part_start, at));
      if (code === QUOTE) {
        this.at = at + 1;
        return parts.join('');
      }
      const letter = text.charCodeAt(at + 1);
      if (letter === 0x75) {
        parts.push(String.fromCharCode(this.codeUnit(at + 2)));
        at += 6;
      } else {
        parts.push(ESCAPES.get(letter) ?? this.fail(at + 1));
        at += 2;
      }
      part_start = at;
    }
    return this.fail(text.length);
  }

  /** Returns the four hexadecimal digits at `at` as a number. */
  private codeUnit(at: number): number {
    let unit = 0;
    for (let digit = at; digit < at + 4; digit += 1) {
      const code = this.text.charCodeAt(digit);
      const letter = code | 0x20;
      if (isDigit(code)) unit = unit * 16 + code - ZERO;
      else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
      else this.fail(digit);
    }
    return unit;
  }

  private number(): number | string {
    const { text } = this;
    const start = this.at;
    const first_digit = text.charCodeAt(start) === MINUS ? start + 1 : start;
    let at = this.digits(first_digit);
    if (text.charCodeAt(first_digit) === ZERO && at > first_digit + 1) this.fail(first_digit + 1);
    const integer_end = at;
    if (text.charCodeAt(at) === 0x2e) at = this.digits(at + 1);
    if ((text.charCodeAt(at) | 0x20) === 0x65) {
      const sign = text.charCodeAt(at + 1);
      at = this.digits(sign === 0x2b || sign === MINUS ? at + 2 : at + 1);
    }
    this.at = at;
    // A single digit has a short path, because a body may have half a million of them.
    if (at === start + 1) return text.charCodeAt(start) - ZERO;
    const written = text.slice(start, at);
    const double = Number(written);
    if (this.depth <= this.numbers_level) return double;
    if (!Number.isFinite(double)) return written;
    const may_be_rounded = at === integer_end && at - start >= LONG_INTEGER_LENGTH;
    return may_be_rounded && !isExactly(double, written) ? written : double;
  }

  /** Returns the end of the digits from `start`; there must be at least one. */
  private digits(start: number): number {
    let at = start;
    while (isDigit(this.text.charCodeAt(at))) at += 1;
    if (at === start) this.fail(at);
    return at;
  }
}

function placeOf(text: string, at: number): JsonPlace {
  let line = 1;
  let line_start = 0;
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', line_start)) {
    line += 1;
    line_start = end + 1;
  }
  // An escape that the end cuts off has its next character beyond the end.
  const is_end = at >= text.length;
  return { line, column: Math.min(at, text.length) - line_start + 1, is_end };
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Returns true if an integer, as JSON writes it, is exactly that finite double. */
function isExactly(double: number, written: string): boolean {
  return BigInt(double).toString() === written;
}
