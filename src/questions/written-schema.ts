import { ANY_TEXT } from './question-fields.ts';

/** A JSON Schema in its written form, or a part of one. */
export type WrittenSchema = Readonly<Record<string, unknown>>;

export function isWrittenSchema(value: unknown): value is WrittenSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns a part of a schema for its readers elsewhere: `AnyKey` as `additionalProperties`. Many generators and models'
 * interfaces do not know, or refuse, `patternProperties`.
 */
export function withoutKeyPattern(schema: WrittenSchema): WrittenSchema {
  const { patternProperties, ...others } = schema;
  const values = isWrittenSchema(patternProperties) ? patternProperties[ANY_TEXT] : undefined;
  return values === undefined ? schema : { ...others, additionalProperties: values };
}
