import { isJsonArray, type JsonObject, type JsonValue } from '../../src/json/json-value.ts';

/** A text has, or would be rendered to, more characters than the limit. */
export class TextTooLong extends Error {
  override readonly name = 'TextTooLong';
}

/** A budget of characters, because a small value can be rendered to a text many times its size. */
export class CharacterBudget {
  constructor(private left: number) {}

  /** Spends `characters`. Throws `TextTooLong` when fewer are left. */
  spend(characters: number): void {
    this.left -= characters;
    if (this.left < 0) throw new TextTooLong('The text has too many characters.');
  }
}

/** Returns true for characters that Python's `str.strip` removes. JavaScript's `trim` differs in five of them. */
function isSpace(code: number): boolean {
  return (
    (code >= 0x09 && code <= 0x0d) ||
    (code >= 0x1c && code <= 0x20) ||
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

function trimEnd(value: string): string {
  let end = value.length;
  while (end > 0 && isSpace(value.charCodeAt(end - 1))) end -= 1;
  return value.slice(0, end);
}

/** Returns `value` without white space at either end, by the rules of the training data. */
export function trim(value: string): string {
  const ended = trimEnd(value);
  let start = 0;
  while (start < ended.length && isSpace(ended.charCodeAt(start))) start += 1;
  return ended.slice(start);
}

function numberText(value: number): string {
  // Integral floats are written as integers, however large: 19.0 is "19" and 1e21 has no exponent.
  if (Number.isInteger(value)) return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  // Training wrote small numbers as 1e-05, where JavaScript writes 0.00001 or 1e-7.
  if (Math.abs(value) < 1e-4) return value.toExponential().replace(/e-(\d)$/, 'e-0$1');
  return String(value);
}

function scalarText(value: string | number | boolean | null): string {
  if (value === null) return 'null';
  return typeof value === 'number' ? numberText(value) : String(value);
}

/** Returns true if the value is neither an array nor an object. */
export function isScalar(value: JsonValue): value is string | number | boolean | null {
  return value === null || typeof value !== 'object';
}

/** Lines of text, within a budget of characters. */
class Lines {
  readonly #lines: string[] = [];

  constructor(private readonly budget: CharacterBudget | undefined) {}

  /** Spends the budget for a part of a line that is added later. */
  spend(part: string): string {
    this.budget?.spend(part.length);
    return part;
  }

  add(line: string): void {
    this.budget?.spend(line.length + 1);
    this.#lines.push(line);
  }

  toString(): string {
    return this.#lines.join('\n');
  }
}

/** Indentations by level. A value has at most some tens of levels. */
const PADS = [''];

function padOf(indent: number): string {
  for (let next = PADS.length; next <= indent; next += 1) PADS.push(' '.repeat(next));
  return PADS[indent] ?? '';
}

/** `lead` replaces the indentation of the first line: a dash if the value is an item of a list. */
function writeList(items: readonly JsonValue[], indent: number, lead: string, lines: Lines): void {
  items.forEach((item, index) => {
    const start = index === 0 ? lead : padOf(indent);
    if (isScalar(item)) lines.add(`${start}- ${scalarText(item)}`);
    else if (isEmpty(item)) lines.add(`${start}- `);
    else write(item, indent + 1, `${start}- `, lines);
  });
}

function writeObject(
  { names, values }: JsonObject<JsonValue>,
  indent: number,
  lead: string,
  lines: Lines,
): void {
  values.forEach((item, index) => {
    const start = `${index === 0 ? lead : padOf(indent)}${names[index] ?? ''}:`;
    if (isScalar(item)) lines.add(trimEnd(`${start} ${scalarText(item)}`));
    else if (isEmpty(item)) lines.add(start);
    else if (isJsonArray(item) && item.every(isScalar)) {
      // Each item is counted before the next is written, because one line may be most of the text.
      lines.add(`${start} ${item.map((one) => lines.spend(scalarText(one))).join(', ')}`);
    } else {
      lines.add(start);
      write(item, indent + 1, padOf(indent + 1), lines);
    }
  });
}

function isEmpty(value: Exclude<JsonValue, string | number | boolean | null>): boolean {
  return isJsonArray(value) ? value.length === 0 : value.names.length === 0;
}

function write(
  value: Exclude<JsonValue, string | number | boolean | null>,
  indent: number,
  lead: string,
  lines: Lines,
): void {
  if (isJsonArray(value)) writeList(value, indent, lead, lines);
  else writeObject(value, indent, lead, lines);
}

/**
 * Renders a JSON value as compact text: `key: value` lines, one space of indentation a level, lists of scalars on one
 * line. The same value gives the same text. Throws `TextTooLong` soon after `budget` is spent, because numbers and
 * indentation can make the text far longer than the JSON.
 */
export function render(value: JsonValue, budget?: CharacterBudget): string {
  const lines = new Lines(budget);
  if (isScalar(value)) return lines.spend(scalarText(value));
  write(value, 0, '', lines);
  return lines.toString();
}

/**
 * Renders instructions or a description: nothing for null, a trimmed string, or the rendered value. Throws
 * `TextTooLong` if that exceeds `budget`.
 */
export function text(value: JsonValue | undefined, budget?: CharacterBudget): string {
  if (value === undefined || value === null) return '';
  return render(typeof value === 'string' ? trim(value) : value, budget);
}

/** Renders a record: a string as it is, anything else within `budget` (`TextTooLong`). */
export function recordText(state: JsonValue, budget?: CharacterBudget): string {
  return typeof state === 'string' ? state : render(state, budget);
}

/** Renders instructions, a description or a level; see `text`. */
export type TextReader = (value: JsonValue | undefined) => string;

/** Returns the text without differences in case, spaces and hyphens, to compare an id with its description. */
function plain(value: string): string {
  return value.toLowerCase().replaceAll(' ', '_').replaceAll('-', '_');
}

/**
 * Returns an option's text for the model: its id, and its description if that adds anything. `read` renders the
 * description within its own bounds.
 */
export function optionText(id: string, description: JsonValue, read: TextReader = text): string {
  const option = trim(id);
  const described = read(description);
  return described === '' || plain(described) === plain(option) ? option : `${option}: ${described}`;
}
