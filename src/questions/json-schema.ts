import { ANY_TEXT } from './question-fields.ts';

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export function isJsonSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns a part of a schema for its readers elsewhere: `AnyKey` as `additionalProperties`. Many generators and models'
 * interfaces do not know, or refuse, `patternProperties`.
 */
export function withoutKeyPattern(schema: JsonSchema): JsonSchema {
  const { patternProperties, ...others } = schema;
  const values = isJsonSchema(patternProperties) ? patternProperties[ANY_TEXT] : undefined;
  return values === undefined ? schema : { ...others, additionalProperties: values };
}

/**
 * Returns a union of literals of one type as an `enum`, and any other schema as it is. Of the literals, generators of
 * clients make a class each, and some of these classes then refuse all values but the first.
 */
export function withEnum(schema: JsonSchema): JsonSchema {
  const { anyOf, ...others } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const members = anyOf.filter(isLiteral);
  const [{ type } = {}] = members;
  return members.length === anyOf.length && members.every((member) => member.type === type)
    ? { ...others, type, enum: members.flatMap((member) => member.enum ?? [member.const]) }
    : schema;
}

function isLiteral(value: unknown): value is JsonSchema {
  return isJsonSchema(value) && (value.const !== undefined || Array.isArray(value.enum));
}
