import { Refusal } from '../errors/errors.ts';
import { parseJson } from '../http/body.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { CommandFailed } from './command-failed.ts';

/** Returns the body of a request in a file, or on standard input for `-`. Throws `CommandFailed`. */
export async function readQuestionFile(file: string): Promise<JsonObject<JsonValue>> {
  const source = file === '-' ? Bun.stdin : Bun.file(file);
  let bytes: Uint8Array;
  try {
    bytes = await source.bytes();
  } catch (error) {
    throw new CommandFailed(`${file} cannot be read: name a JSON file with state and questions.`, {
      cause: error,
    });
  }
  const value = parseJson(bytes);
  if (value instanceof Refusal) throw new CommandFailed(`${nameOf(file)} cannot be read: ${value.message}`);
  if (!isJsonObject(value))
    throw new CommandFailed(`${nameOf(file)} must be a JSON object with state and questions.`);
  return value;
}

function nameOf(file: string): string {
  return file === '-' ? 'Standard input' : file;
}
