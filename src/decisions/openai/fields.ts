import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { joinedParts } from '../record-parts.ts';
import { DecisionRefusal } from '../refusal.ts';

/** Reading the fields of OpenAI's shape, and refusing invalid ones. */

/**
 * Returns the refusal of a field that does not fit the shape. `path` is the field's, such as `input[2].role`.
 */
export function unfit(path: string, message: string): DecisionRefusal {
  return new DecisionRefusal('invalid_request', { message, param: path });
}

/** Returns the string under a name, or a refusal that names the field. */
export function stringField(
  object: JsonObject<JsonValue>,
  name: string,
  path: string,
): string | DecisionRefusal {
  const value = object.get(name);
  return typeof value === 'string' ? value : unfit(`${path}.${name}`, `"${name}" must be a string.`);
}

/** The types of text parts, each with its field of text. */
const TEXT_FIELDS: Readonly<Record<string, string>> = {
  input_text: 'text',
  output_text: 'text',
  refusal: 'refusal',
};

/**
 * Returns the value of a text or of its parts, by `joinedParts`. An `input_json` part is its JSON. The path of an image
 * is added to `images`. Refuses parts of any other type.
 */
export function contentOf(
  content: JsonValue | undefined,
  path: string,
  images: string[],
): JsonValue | DecisionRefusal {
  if (typeof content === 'string') return content;
  if (!isJsonArray(content)) return unfit(path, 'The content must be a string or a list of parts.');
  const values: JsonValue[] = [];
  for (const [index, part] of content.entries()) {
    const value = partOf(part, `${path}[${index}]`, images);
    if (value instanceof DecisionRefusal) return value;
    values.push(value);
  }
  return joinedParts(values);
}

function partOf(part: JsonValue, path: string, images: string[]): JsonValue | DecisionRefusal {
  const type = isJsonObject(part) ? part.get('type') : undefined;
  if (!isJsonObject(part) || typeof type !== 'string')
    return unfit(path, 'A part must be an object with a type.');
  if (type === 'input_image') {
    images.push(path);
    return '';
  }
  if (type === 'input_json') {
    const data = part.get('data');
    return typeof data === 'object' && data !== null
      ? data
      : unfit(`${path}.data`, '"data" must be an object or an array.');
  }
  const field = Object.hasOwn(TEXT_FIELDS, type) ? TEXT_FIELDS[type] : undefined;
  return field === undefined
    ? unfit(`${path}.type`, 'A part must be "input_text", "input_json", "output_text" or "refusal".')
    : stringField(part, field, path);
}
