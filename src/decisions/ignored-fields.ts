import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { questionFields } from '../questions/question.ts';
import { SystemOneRequestSchema } from './schemas.ts';

/** So many names are told to a client, each in so many characters. */
const NAMES_MAX = 8;
const NAME_LENGTH_MAX = 64;

const BODY_FIELDS: readonly string[] = Object.keys(SystemOneRequestSchema.properties);

/**
 * The fields of a request and of its questions that nothing reads, each name once and the first few only. They are no
 * error (contract: unknown fields are ignored), but a misspelt one is charged like the right one.
 */
export function ignoredFields(body: JsonObject<JsonValue>): readonly string[] {
  const ignored: string[] = [];
  addUnknown(ignored, body, BODY_FIELDS);
  const questions = body.get('questions');
  for (const question of isJsonObject(questions) ? questions.values : []) {
    if (isJsonObject(question)) addUnknown(ignored, question, questionFields(question));
  }
  return ignored;
}

function addUnknown(ignored: string[], object: JsonObject<JsonValue>, known: readonly string[]): void {
  for (const name of object.names) {
    if (ignored.length === NAMES_MAX) return;
    if (!known.includes(name) && !ignored.includes(name)) ignored.push(name);
  }
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
