import { isJsonArray, isJsonObject, type JsonValue } from '../json/json-value.ts';
import type { DecisionRecord } from './schemas.ts';

/** Returns true for a value that can be a record. */
export function isRecord(value: JsonValue | undefined): value is DecisionRecord {
  return typeof value === 'string' || (typeof value === 'object' && value !== null);
}

/**
 * Returns the record of a list of nothing but the parts that the AI SDK makes of every record, `text` and `json`.
 * Anything else is returned as it is.
 */
export function withoutParts(state: JsonValue | undefined): JsonValue | undefined {
  if (!isJsonArray(state) || state.length === 0) return state;
  const contents = state.map(contentOfPart);
  const known = contents.filter((content) => content !== undefined);
  return known.length < contents.length ? state : joinedParts(known);
}

/** The field of a part's content, by the type of the part. */
const CONTENT_FIELDS = [
  ['text', 'text'],
  ['json', 'value'],
] as const;

/** Returns the content of a part; undefined for any other value. */
function contentOfPart(part: JsonValue): JsonValue | undefined {
  if (!isJsonObject(part)) return undefined;
  const [type, field] = CONTENT_FIELDS.find(([each]) => each === part.get('type')) ?? [];
  if (field === undefined) return undefined;
  const fields: readonly string[] = ['type', field, 'providerOptions'];
  const content = part.get(field);
  const is_text = type !== 'text' || typeof content === 'string';
  return is_text && part.names.every((name) => fields.includes(name)) ? content : undefined;
}

/**
 * Returns the value of the contents of parts. Adjacent texts are joined by line breaks. One that can be a record is it
 * alone; anything else is a list.
 */
export function joinedParts(contents: readonly JsonValue[]): JsonValue {
  const values: JsonValue[] = [];
  for (const content of contents) {
    const last = values.at(-1);
    if (typeof content === 'string' && typeof last === 'string')
      values[values.length - 1] = `${last}\n${content}`;
    else values.push(content);
  }
  const [only = ''] = values;
  return values.length > 1 || !isRecord(only) ? values : only;
}
