import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';

/** Messages whose arguments of a tool go past the protocol's library, which reads them as plain objects. */

/** The level of a tool's arguments in a message: they are in `params`. */
export const ARGUMENTS_LEVEL = 3;

/** No arguments of a tool. */
export const NO_ARGUMENTS = new JsonObject<JsonValue>([], []);

/** Returns the arguments of a tool in a message; undefined where it has none. */
export function argumentsOf(message: JsonObject<JsonValue>): JsonValue | undefined {
  const params = message.get('params');
  return isJsonObject(params) ? params.get('arguments') : undefined;
}

/** Returns a message with other arguments, where it has any. */
export function withArguments(message: JsonObject<JsonValue>, given: JsonValue): JsonObject<JsonValue> {
  const params = message.get('params');
  return isJsonObject(params) && params.get('arguments') !== undefined
    ? message.with('params', params.with('arguments', given))
    : message;
}
