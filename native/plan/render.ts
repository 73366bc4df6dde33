import type { JsonValue } from './json.ts';

/** Characters that Python's `str.strip` removes; JavaScript's `trim` differs in five of them. */
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

/** `value` without white space at either end, by the rules that the training data was made with. */
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

function isScalar(value: JsonValue): value is string | number | boolean | null {
  return value === null || typeof value !== 'object';
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function listLines(items: readonly JsonValue[], indent: number): string {
  const pad = ' '.repeat(indent);
  const deeper = ' '.repeat(indent + 1);
  return items
    .map((item) => {
      if (isScalar(item)) return `${pad}- ${scalarText(item)}`;
      const rendered = render(item, indent + 1);
      // The dash takes the place of the first indentation.
      return rendered.startsWith(deeper) ? `${pad}-${rendered.slice(indent)}` : `${pad}- ${rendered}`;
    })
    .join('\n');
}

function objectLines(value: { readonly [key: string]: JsonValue }, indent: number): string {
  const pad = ' '.repeat(indent);
  return Object.entries(value)
    .map(([key, item]) => {
      if (isScalar(item)) return trimEnd(`${pad}${key}: ${scalarText(item)}`);
      if (isList(item)) {
        if (item.length === 0) return trimEnd(`${pad}${key}:`);
        if (item.every(isScalar)) return `${pad}${key}: ${item.map(scalarText).join(', ')}`;
      } else if (Object.keys(item).length === 0) return trimEnd(`${pad}${key}:`);
      return `${pad}${key}:\n${render(item, indent + 1)}`;
    })
    .join('\n');
}

/**
 * A JSON value as compact text: `key: value` lines, one space of indentation a level, lists of scalars on one line.
 * The same value gives the same text.
 */
export function render(value: JsonValue, indent = 0): string {
  if (isScalar(value)) return scalarText(value);
  return isList(value) ? listLines(value, indent) : objectLines(value, indent);
}

/** Instructions or a description as the model reads it: nothing for null, a trimmed string, or the rendered value. */
export function text(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? trim(value) : render(value);
}

/** A record as the model reads it: a string as it is, anything else rendered. */
export function recordText(state: JsonValue): string {
  return typeof state === 'string' ? state : render(state);
}
