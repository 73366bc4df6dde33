import { isJsonArray, isJsonObject, type JsonValue } from './json-value.ts';

/** The most names in all objects of a value together: if they all collide, they are still found in a millisecond. */
const NAMES_MAX = 256;

/**
 * Returns a client's value with plain objects. Returns undefined for one with more than 256 names, because plain objects
 * find names by a hash without a seed.
 */
export function plainJson(value: JsonValue): unknown {
  return nameCount(value) > NAMES_MAX ? undefined : plain(value);
}

function nameCount(value: JsonValue): number {
  if (isJsonArray(value)) return value.reduce<number>((count, item) => count + nameCount(item), 0);
  if (!isJsonObject(value)) return 0;
  return value.names.length + nameCount(value.values);
}

function plain(value: JsonValue): unknown {
  if (isJsonArray(value)) return value.map(plain);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(value.entries().map(([name, member]) => [name, plain(member)]));
}
