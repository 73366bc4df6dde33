import { isJsonSchema, type JsonSchema, withEnum, withoutKeyPattern } from '../questions/json-schema.ts';
import type { NamedSchema } from './route.ts';

/**
 * Returns the schemas of `components.schemas`. Every part with a title is an entry of its own, and is
 * referenced wherever it is used. Members of a union are distinguished by the literal of their `type`.
 */
export function sharedSchemas(named: readonly NamedSchema[]): Readonly<Record<string, JsonSchema>> {
  const components = new Map<string, JsonSchema>();
  const shared = new Map<string, string>();
  const share = (name: string, schema: JsonSchema): void => {
    const text = JSON.stringify(schema);
    if (shared.has(name)) {
      if (shared.get(name) === text) return;
      throw new Error(`two schemas of the reference are called ${name}`);
    }
    shared.set(name, text);
    // The entry is created first, so that a schema precedes its parts.
    components.set(name, {});
    components.set(name, entriesOf(schema));
  };
  const entriesOf = (schema: JsonSchema): JsonSchema => {
    const written = withEnum(withoutKeyPattern(schema));
    const fields = Object.fromEntries(Object.entries(written).map(([key, value]) => [key, partOf(value)]));
    const discriminator = discriminatorOf(schema);
    if (discriminator === null) return fields;
    const { anyOf, ...others } = fields;
    return { ...others, oneOf: anyOf, discriminator };
  };
  const partOf = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(partOf);
    if (!isJsonSchema(value)) return value;
    if (typeof value.title !== 'string') return entriesOf(value);
    share(value.title, value);
    return { $ref: referenceTo(value.title) };
  };
  for (const { name, schema } of named) share(name, schema);
  return Object.fromEntries(components);
}

/** Returns the reference of a schema in the document. */
export function referenceTo(name: string): string {
  return `#/components/schemas/${name}`;
}

/**
 * Returns the discriminator of a union; null where its members have no titles, or no literal `type` of their
 * own.
 */
function discriminatorOf({ anyOf }: JsonSchema) {
  if (!Array.isArray(anyOf)) return null;
  const mapping = new Map<string, string>();
  for (const member of anyOf) {
    const kind = isJsonSchema(member) && isJsonSchema(member.properties) ? member.properties.type : undefined;
    const literal = isJsonSchema(kind) ? kind.const : undefined;
    if (!isJsonSchema(member) || typeof member.title !== 'string' || typeof literal !== 'string') return null;
    mapping.set(literal, referenceTo(member.title));
  }
  return mapping.size < anyOf.length ? null : { propertyName: 'type', mapping: Object.fromEntries(mapping) };
}
