import fc from 'fast-check';
import { CONTROL_SPELLINGS, jsonValue, text } from './schema-values.ts';

/** A change of a JSON value at some place in it. */
type Change = (value: unknown) => unknown;

const replacement: fc.Arbitrary<unknown> = fc.oneof(
  jsonValue,
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    1e308,
    -1,
    '',
    [],
    {},
    [[]],
    'noul',
    'fast',
    'consistent',
  ),
  fc
    .integer({ min: 1, max: 300 })
    .map((count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))),
  fc.integer({ min: 1, max: 300 }).map((count) => Array.from({ length: count }, (_, i) => i)),
  fc.integer({ min: 1, max: 1_200 }).map(nestedArray),
  fc.constantFrom(...CONTROL_SPELLINGS),
  text.map((value) => value.repeat(50)),
);

function nestedArray(levels: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { k: value };
  return value;
}

/** One change at a place that is chosen by following `path` into the value. */
const change: fc.Arbitrary<Change> = fc
  .record({
    path: fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 5 }),
    kind: fc.constantFrom('replace', 'remove', 'rename', 'add', 'wrap'),
    value: replacement,
    name: fc.oneof(
      text,
      fc.constantFrom('model', 'state', 'questions', 'mode', 'type', 'criteria', 'threshold'),
    ),
  })
  .map(
    ({ path, kind, value, name }) =>
      (root: unknown) =>
        changeAt(root, path, kind, value, name),
  );

/** A value with one to three changes. */
export function changed(values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(values, fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([value, changes]) => changes.reduce((sum, apply) => apply(sum), value));
}

function changeAt(
  root: unknown,
  path: readonly number[],
  kind: string,
  value: unknown,
  name: string,
): unknown {
  const [step = 0, ...rest] = path;
  if (typeof root !== 'object' || root === null) return kind === 'wrap' ? [root] : value;
  const isList = Array.isArray(root);
  const entries: [string, unknown][] = Object.entries(root);
  const rebuilt = (changed: readonly (readonly [string, unknown])[]) =>
    isList ? changed.map(([, each]) => each) : Object.fromEntries(changed);
  if (entries.length === 0) return kind === 'add' ? rebuilt([[name, value]]) : value;
  const at = step % entries.length;
  const [key, child] = entries[at] ?? ['', undefined];
  if (rest.length > 0 && typeof child === 'object' && child !== null) {
    return rebuilt(entries.with(at, [key, changeAt(child, rest, kind, value, name)]));
  }
  switch (kind) {
    case 'remove':
      return rebuilt(entries.toSpliced(at, 1));
    case 'rename':
      return rebuilt(entries.with(at, [name, child]));
    case 'add':
      return rebuilt([...entries, [name, value]]);
    case 'wrap':
      return rebuilt(entries.with(at, [key, [child]]));
    default:
      return rebuilt(entries.with(at, [key, value]));
  }
}

/** A change of JSON text, or of its bytes, that may leave it no JSON at all. */
export const brokenBytes: fc.Arbitrary<(json: string) => Uint8Array> = fc
  .record({
    kind: fc.constantFrom(
      'cut',
      'flip',
      'insert bytes',
      'insert text',
      'duplicate key',
      'huge number',
      'raw control',
      'surrogate escape',
      'deep',
      'utf-16',
      'bom',
      'trailing',
      'padded',
    ),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 6 }),
    insert: fc.oneof(
      text,
      fc.constantFrom('{', '}', '[', ']', '"', ',', ':', '\\', '/*', 'NaN', '-', '1e999', "'"),
    ),
    value: jsonValue,
  })
  .map(({ kind, at, bytes, insert, value }) => (json: string) => {
    const clean = Buffer.from(json);
    const place = Math.floor(at * clean.length);
    const between = (middle: Uint8Array | string) =>
      Buffer.concat([clean.subarray(0, place), Buffer.from(middle), clean.subarray(place)]);
    switch (kind) {
      case 'cut':
        return clean.subarray(0, place);
      case 'flip':
        return Buffer.from(clean.map((byte, index) => (index === place ? byte ^ (bytes[0] ?? 1) : byte)));
      case 'insert bytes':
        return between(bytes);
      case 'insert text':
        return between(insert);
      case 'duplicate key':
        return Buffer.from(
          json.replace('{', `{"model":${JSON.stringify(value)},"state":${JSON.stringify(value)},`),
        );
      case 'huge number':
        return Buffer.from(json.replace(/"[^"\\]*"(?=[,}\]])/, at < 0.5 ? '1e999' : '9'.repeat(5_000)));
      case 'raw control':
        return between('\u0001');
      case 'surrogate escape':
        return Buffer.from(json.replace(/"(?=[,}\]])/, '\\ud800"'));
      case 'deep':
        return Buffer.from(`{"state":${'['.repeat(Math.floor(at * 100_000))}`);
      case 'utf-16':
        return Buffer.from(json, 'utf16le');
      case 'bom':
        return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), clean]);
      case 'trailing':
        return Buffer.concat([clean, Buffer.from(insert)]);
      default:
        return Buffer.concat([clean, Buffer.alloc(Math.floor(at * 30_000), ' ')]);
    }
  });
