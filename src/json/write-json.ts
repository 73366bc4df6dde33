import { JsonObject } from './json-value.ts';

/**
 * A value that can be written as JSON: objects with a client's names are `JsonObject`, those with ours are
 * plain objects.
 */
export type WritableJson =
  | string
  | number
  | boolean
  | null
  | readonly WritableJson[]
  | JsonObject<WritableJson>
  | WritableObject;

type WritableObject = { readonly [name: string]: WritableJson | undefined };

/** Returns the value's text as `JSON.stringify` writes it: undefined members are left out. */
export function writeJson(value: WritableJson): string {
  const parts: string[] = [];
  write(value, parts);
  return parts.join('');
}

function write(value: WritableJson, parts: string[]): void {
  if (typeof value === 'number') parts.push(Number.isFinite(value) ? String(value) : 'null');
  else if (value === null || typeof value !== 'object') parts.push(JSON.stringify(value));
  else if (isList(value)) {
    value.forEach((item, index) => {
      parts.push(index === 0 ? '[' : ',');
      write(item, parts);
    });
    parts.push(value.length === 0 ? '[]' : ']');
  } else if (value instanceof JsonObject) writeMembers(value.names, value.values, parts);
  else {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    writeMembers(
      members.map(([name]) => name),
      members.map(([, member]) => member),
      parts,
    );
  }
}

function writeMembers(
  names: readonly string[],
  values: readonly (WritableJson | undefined)[],
  parts: string[],
): void {
  names.forEach((name, index) => {
    parts.push(index === 0 ? '{' : ',', JSON.stringify(name), ':');
    write(values[index] ?? null, parts);
  });
  parts.push(names.length === 0 ? '{}' : '}');
}

function isList(value: WritableJson): value is readonly WritableJson[] {
  return Array.isArray(value);
}
