import type { JsonValue } from '../json/json-value.ts';
import { readJson } from '../json/read-json.ts';

/** The answer is not what was asked for. The message is a fixed sentence. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

/** The JSON of an answer. Throws `WrongAnswer`. */
export function parsedAnswer(text: string): JsonValue {
  try {
    return readJson(text);
  } catch {
    // An error of the reader may quote the text.
    throw new WrongAnswer('The answer is no JSON.');
  }
}
