import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

/** The part of an OpenAPI document that the reference shows. */

const text = Type.Optional(Type.String());
const count = Type.Optional(Type.Number());
const byName = <T extends ReturnType<typeof Type.Object>>(schema: T) => Type.Record(Type.String(), schema);

const Schema = Type.Recursive((This) =>
  Type.Object({
    $ref: text,
    description: text,
    type: text,
    const: Type.Optional(Type.Unknown()),
    anyOf: Type.Optional(Type.Array(This)),
    oneOf: Type.Optional(Type.Array(This)),
    items: Type.Optional(This),
    properties: Type.Optional(Type.Record(Type.String(), This)),
    additionalProperties: Type.Optional(This),
    required: Type.Optional(Type.Array(Type.String())),
    minimum: count,
    maximum: count,
    minLength: count,
    maxLength: count,
    minItems: count,
    maxItems: count,
    minProperties: count,
    maxProperties: count,
  }),
);
/** A schema, or a reference to one. */
export type DocumentedSchema = Static<typeof Schema>;

const Content = byName(
  Type.Object({
    schema: Schema,
    examples: byName(Type.Object({ summary: Type.String(), value: Type.Unknown() })),
  }),
);
/** A body by its media type: its schema, and examples of it by name. */
export type DocumentedContent = Static<typeof Content>;

const Operation = Type.Object({
  summary: Type.String(),
  description: text,
  tags: Type.Array(Type.String()),
  parameters: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        in: Type.String(),
        description: text,
        required: Type.Optional(Type.Boolean()),
        schema: Schema,
      }),
    ),
  ),
  requestBody: Type.Optional(Type.Object({ description: text, content: Content })),
  responses: byName(
    Type.Object({
      description: Type.String(),
      headers: byName(Type.Object({ description: Type.String() })),
      content: Content,
    }),
  ),
});
export type DocumentedOperation = Static<typeof Operation>;

const OpenApiDocument = Type.Object({
  info: Type.Object({ title: Type.String(), version: Type.String(), description: Type.String() }),
  /** The tags in their displayed order. */
  tags: Type.Array(Type.Object({ name: Type.String(), description: text })),
  paths: Type.Record(Type.String(), Type.Record(Type.String(), Operation)),
  components: Type.Object({
    schemas: Type.Record(Type.String(), Schema),
    securitySchemes: byName(Type.Object({ description: Type.String() })),
  }),
});
export type OpenApiDocument = Static<typeof OpenApiDocument>;

/**
 * Returns the document with the parts that the reference reads. Throws where one of them is not as expected.
 */
export function checkedDocument(document: unknown): OpenApiDocument {
  Value.Assert(OpenApiDocument, document);
  return document;
}
