import type { Static, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

/**
 * Returns the value of a JSON text, such as a message or a line of our own file; undefined for any other text. Clients
 * do not write such texts: theirs are read by `readJson`.
 */
export function checkedJson<Schema extends TSchema>(
  schema: Schema,
  text: string,
): Static<Schema> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Value.Check(schema, value) ? value : undefined;
  } catch {
    // Nothing is lost: the caller refuses text that is not JSON as it does another value.
    return undefined;
  }
}
