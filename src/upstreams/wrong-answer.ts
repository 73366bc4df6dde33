import type { JsonValue } from '../json/json-value.ts';
import { readJson } from '../json/read-json.ts';

/** The answer does not match the question. The message is a fixed sentence. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

/** Parses the JSON of an answer. Throws `WrongAnswer`. */
export function parsedAnswer(text: string): JsonValue {
  try {
    return readJson(text);
  } catch {
    // The JSON error may quote the text.
    throw new WrongAnswer('The answer is no JSON.');
  }
}
