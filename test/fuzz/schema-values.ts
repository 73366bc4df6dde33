import { Kind, type TSchema } from '@sinclair/typebox';
import fc from 'fast-check';

/** The spellings of the model's control tokens that a client could try, and pieces of them. */
export const CONTROL_SPELLINGS = [
  '<|record|>',
  '<|question|>',
  '<|option|>',
  '<|answer|>',
  '<|yes|>',
  '<|no|>',
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<|answer|><|yes|>',
  '<|answer',
  '|>',
  '< |answer| >',
  '<issue_comment>',
] as const;

const word = fc.constantFrom(
  'refund',
  'order',
  'late',
  'team',
  'yes',
  'no',
  'a',
  'true',
  '0',
  '10',
  'type',
  '__proto__',
);

/** Text as clients send it and as attackers do: words, any Unicode, lone surrogates, controls, control tokens. */
export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.array(word, { maxLength: 4 }).map((words) => words.join(' ')) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 6 }) },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.constantFrom(...CONTROL_SPELLINGS), { maxLength: 3 })
      .map((parts) => parts.join('')),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '\ud800',
      'a\udc00b',
      '\u0000',
      '\u001b[2J',
      '\ufeff',
      '\u202e',
      ' \t\r\n ',
      '\u2028',
    ),
  },
);

/** Any JSON value, small. */
export const jsonValue: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    text,
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(text, tie('value'), { maxKeys: 3 }),
  ),
})).value;

/** How many entries an unbounded list or map gets at most. */
const ENTRIES_MAX = 4;

/**
 * Values of a TypeBox schema, small ones: of the kinds that the service's request schemas are made of. Throws for any
 * other kind, so that a schema that grows a new one is noticed. `each` may mix others among the values of every part.
 */
export function valuesOf(schema: TSchema, each: Mixed = (values) => values): fc.Arbitrary<unknown> {
  return each(plainValuesOf(schema, (part) => valuesOf(part, each)));
}

type Mixed = (values: fc.Arbitrary<unknown>) => fc.Arbitrary<unknown>;
type ValuesOf = (schema: TSchema) => fc.Arbitrary<unknown>;

function plainValuesOf(schema: TSchema, valuesOf: ValuesOf): fc.Arbitrary<unknown> {
  switch (schema[Kind]) {
    case 'String':
      return fc.oneof(text, text).filter((value) => value.length >= (schema.minLength ?? 0));
    case 'Literal':
      return fc.constant(schema.const);
    case 'Boolean':
      return fc.boolean();
    case 'Integer':
      return fc.integer({ min: schema.minimum, max: schema.maximum });
    case 'Null':
      return fc.constant(null);
    case 'Unknown':
      return jsonValue;
    case 'Union':
      return fc.oneof(...schemasIn(schema.anyOf).map(valuesOf));
    case 'Array':
      return fc.array(valuesOf(schema.items), bounds(schema.minItems, schema.maxItems));
    case 'Record':
      return recordOf(schema, valuesOf);
    case 'Object':
      return objectOf(schema, valuesOf);
    default:
      throw new Error(`no values for a schema of kind ${schema[Kind]}`);
  }
}

/** Values that are nearly a schema's: anywhere in one, the value of another part of the schema may stand. */
export function nearlyValuesOf(schema: TSchema): fc.Arbitrary<unknown> {
  const others = fc.oneof(...partsOf(schema).map((part) => valuesOf(part)));
  return valuesOf(schema, (values) =>
    fc.oneof({ weight: 30, arbitrary: values }, { weight: 1, arbitrary: others }),
  );
}

function partsOf(schema: TSchema): readonly TSchema[] {
  const { anyOf = [], items = [], properties = {}, patternProperties = {} } = schema;
  const inside = [...anyOf, items, ...Object.values(properties), ...Object.values(patternProperties)].flat();
  return [schema, ...schemasIn(inside).flatMap(partsOf)];
}

function schemasIn(value: unknown): TSchema[] {
  if (!Array.isArray(value)) throw new Error('a union without members');
  return value;
}

function bounds(least = 0, most = Number.POSITIVE_INFINITY) {
  return { minLength: least, maxLength: Math.min(most, Math.max(least, ENTRIES_MAX)) };
}

function recordOf(schema: TSchema, valuesOf: ValuesOf): fc.Arbitrary<unknown> {
  const [values] = schemasIn(Object.values(schema.patternProperties ?? {}));
  if (values === undefined) throw new Error('a record without values');
  const { minLength, maxLength } = bounds(schema.minProperties, schema.maxProperties);
  const entry = fc.tuple(text, valuesOf(values));
  return fc
    .uniqueArray(entry, { minLength, maxLength, selector: ([key]) => key })
    .map((entries) => Object.fromEntries(entries));
}

function objectOf(schema: TSchema, valuesOf: ValuesOf): fc.Arbitrary<unknown> {
  const required: unknown = schema.required ?? [];
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name);
  const properties = Object.entries<TSchema>(schema.properties);
  const entries = properties.map(([name, each]) =>
    fc
      .tuple(isRequired(name) ? fc.constant(true) : fc.boolean(), valuesOf(each))
      .map(([present, value]) => (present ? [[name, value] as const] : [])),
  );
  return fc.tuple(...entries).map((present) => Object.fromEntries(present.flat()));
}
