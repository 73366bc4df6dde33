import { Type } from '@sinclair/typebox';

/** Returns the schema of one of these values. Of a list of unknown length, Elysia's types would make never. */
export function oneOf<const Value extends string | boolean>(values: readonly Value[]) {
  return Type.Unsafe<Value>(Type.Union(values.map((value) => Type.Literal(value))));
}
