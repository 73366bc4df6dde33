import { isJsonObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { readJson } from '../../json/read-json.ts';

/** Returns the object that a text is in JSON; null where it is none. */
export function objectIn(text: string): JsonObject<JsonValue> | null {
  try {
    const value = readJson(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
