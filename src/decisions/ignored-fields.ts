import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { questionFields } from '../questions/question.ts';
import { SystemOneRequestSchema } from './schemas.ts';

/** So many names are told to a client, each in so many characters. */
const NAMES_MAX = 8;
const NAME_LENGTH_MAX = 64;

const BODY_FIELDS: readonly string[] = Object.keys(SystemOneRequestSchema.properties);

/** An object of a request, and which of its fields are read. */
export interface ReadObject {
  readonly object: JsonObject<JsonValue>;
  readonly fields: readonly string[];
}

/**
 * The fields of a request and of its questions that nothing reads, each name once and the first few only. They are no
 * error (contract: unknown fields are ignored), but a misspelt one is charged like the right one.
 */
export function ignoredFields(body: JsonObject<JsonValue>): readonly string[] {
  const questions = body.get('questions');
  return unreadFields([
    { object: body, fields: BODY_FIELDS },
    ...(isJsonObject(questions) ? questions.values : [])
      .filter(isJsonObject)
      .map((object) => ({ object, fields: questionFields(object) })),
  ]);
}

/** As `ignoredFields`, of these objects. */
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

/** The names as the value of a header: percent-encoded in UTF-8, cut, and separated by commas. */
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
