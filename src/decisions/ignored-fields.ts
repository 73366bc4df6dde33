import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { criteriaFields, questionFields } from '../questions/question.ts';
import { SystemOneRequestSchema } from './schemas.ts';

/** The most names that a client is told, and their longest length. */
const NAMES_MAX = 8;
const NAME_LENGTH_MAX = 64;

const BODY_FIELDS: readonly string[] = Object.keys(SystemOneRequestSchema.properties);

/** An object of a request, with the fields that are read. */
export interface ReadObject {
  readonly object: JsonObject<JsonValue>;
  readonly fields: readonly string[];
}

/**
 * Returns the first fields of a request and of its questions that nothing reads, each name once. They are no
 * error (contract: unknown fields are ignored), but a request with a misspelt field is charged like any
 * other. `fields` are those that are read beside `questions`, by default the contract's.
 */
export function ignoredFields(
  body: JsonObject<JsonValue>,
  fields: readonly string[] = BODY_FIELDS,
): readonly string[] {
  const questions = body.get('questions');
  return unreadFields([
    { object: body, fields },
    ...(isJsonObject(questions) ? questions.values : []).filter(isJsonObject).flatMap(readObjectsOf),
  ]);
}

/** Returns a question, and its criteria where their names are not the client's own. */
function readObjectsOf(question: JsonObject<JsonValue>): readonly ReadObject[] {
  const asked = { object: question, fields: questionFields(question) };
  const criteria = question.get('criteria');
  if (!isJsonObject(criteria)) return [asked];
  const fields = criteriaFields(question, criteria);
  return fields === null ? [asked] : [asked, { object: criteria, fields }];
}

/** Does as `ignoredFields`, for these objects. */
export function unreadFields(objects: readonly ReadObject[]): readonly string[] {
  const unread: string[] = [];
  for (const { object, fields } of objects) {
    for (const name of object.names) {
      if (unread.length === NAMES_MAX) return unread;
      if (!fields.includes(name) && !unread.includes(name)) unread.push(name);
    }
  }
  return unread;
}

/** Returns the names for JSON, shortened. */
export function ignoredFieldNames(names: readonly string[]): readonly string[] {
  return names.map((name) => name.slice(0, NAME_LENGTH_MAX).toWellFormed());
}

/**
 * Returns the names as the value of a header: percent-encoded in UTF-8, shortened, and separated by commas.
 */
export function ignoredFieldsHeader(names: readonly string[]): string {
  return names.map(headerName).join(', ');
}

function headerName(name: string): string {
  let written = '';
  for (const character of name.slice(0, NAME_LENGTH_MAX).toWellFormed()) {
    const encoded = encodeURIComponent(character);
    if (written.length + encoded.length > NAME_LENGTH_MAX) break;
    written += encoded;
  }
  return written === '' ? '""' : written;
}
