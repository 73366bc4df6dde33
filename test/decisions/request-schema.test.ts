import { describe, expect, test } from 'bun:test';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { BatchLines } from '../../src/decisions/batch/lines.ts';
import { RecordLineSchema } from '../../src/decisions/batch/schemas.ts';
import { imageRefusal } from '../../src/decisions/images.ts';
import { OpenAiTranslation } from '../../src/decisions/openai/openai-shape.ts';
import { OpenAiDecisionRequestSchema } from '../../src/decisions/openai/schemas.ts';
import { DecisionRefusal } from '../../src/decisions/refusal.ts';
import { modelOf, parseDecisionRequest } from '../../src/decisions/request.ts';
import { DecisionRequestSchema, SystemOneRequestSchema } from '../../src/decisions/schemas.ts';
import { isJsonObject, JsonObject, type JsonValue, jsonValueOf } from '../../src/json/json-value.ts';
import { changed } from '../fuzz/mutations.ts';
import { nearlyValuesOf, valuesOf } from '../fuzz/schema-values.ts';
import { propertySeed } from '../ledger/support.ts';

/** Values of the schema, and values that are no longer or only nearly its own. */
function near(schema: TSchema): fc.Arbitrary<unknown> {
  return fc
    .oneof(nearlyValuesOf(schema), changed(valuesOf(schema)))
    .map((value): unknown => JSON.parse(JSON.stringify(value) ?? 'null'));
}

/** Returns true if the reader takes the body, for an organization with any number of questions. */
function isRead(body: JsonValue, default_model: string | null): boolean {
  const object = isJsonObject(body) ? body : new JsonObject<JsonValue>([], []);
  if (modelOf(object, default_model) instanceof DecisionRefusal) return false;
  const request = parseDecisionRequest(object, null, Number.POSITIVE_INFINITY);
  return !(request instanceof DecisionRefusal) && request.rejection === null;
}

/** A schema cannot tell an image from a record. */
function hasImages(body: JsonValue): boolean {
  return isJsonObject(body) && imageRefusal(body) !== null;
}

/** Checks on random values that the reader takes exactly those of the schema, and that both kinds came. */
function expectSame(
  name: string,
  schema: TSchema,
  { isRead, isBeyondSchema }: Readonly<Record<'isRead' | 'isBeyondSchema', (value: unknown) => boolean>>,
): void {
  const seen = { taken: 0, refused: 0 };
  fc.assert(
    fc.property(near(schema), (value) => {
      const is_valid = Value.Check(schema, value) && !isBeyondSchema(value);
      seen[is_valid ? 'taken' : 'refused'] += 1;
      expect(isRead(value)).toBe(is_valid);
    }),
    { numRuns: 5_000, seed: propertySeed(name) },
  );
  expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(500);
}

describe('the reader takes exactly what the schema does', () => {
  test.each([
    ['/v1/decisions', DecisionRequestSchema, null],
    ['/v1/systemone', SystemOneRequestSchema, 'decision-1'],
  ] as const)('of a body of %s', (path, schema, default_model) => {
    expectSame(path, schema, {
      isRead: (value) => isRead(jsonValueOf(value), default_model),
      isBeyondSchema: (value) => hasImages(jsonValueOf(value)),
    });
  });

  test('of a body in OpenAI’s shape', () => {
    expectSame('OpenAI’s shape', OpenAiDecisionRequestSchema, {
      isRead: (value) => {
        const body = new OpenAiTranslation().request(jsonValueOf(value));
        return !(body instanceof DecisionRefusal) && isRead(body, null);
      },
      isBeyondSchema: (value) =>
        hasTwoShapes(value) || hasRepeatedChoices(value) || hasOutputWithoutCall(value),
    });
  });

  test('of a line of a batch whose first line has questions', () => {
    const header = { questions: { q: { type: 'noul' } } };
    const lines = new BatchLines(new JsonObject(['questions'], [jsonValueOf(header.questions)]));
    expectSame('line of a batch', RecordLineSchema, {
      isRead: (value) => {
        const { body } = lines.request(jsonValueOf(value));
        return !(body instanceof DecisionRefusal) && isRead(body, 'decision-1');
      },
      isBeyondSchema: (value) => hasImages(jsonValueOf(value)),
    });
  });
});

/** Returns the items of a list under a name, or none. */
function itemsOf(value: unknown, name: string): readonly unknown[] {
  const list = fieldOf(value, name);
  return Array.isArray(list) ? list : [];
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Object.entries(value).find(([each]) => each === name)?.[1]
    : undefined;
}

function hasTwoShapes(body: unknown): boolean {
  return fieldOf(body, 'state') !== undefined;
}

function hasRepeatedChoices(body: unknown): boolean {
  return itemsOf(body, 'questions').some((question) => {
    if (fieldOf(question, 'type') !== 'choice') return false;
    const values = itemsOf(question, 'choices').map((choice) => fieldOf(choice, 'value'));
    return new Set(values).size < values.length;
  });
}

function hasOutputWithoutCall(body: unknown): boolean {
  const called = new Set<unknown>();
  return itemsOf(body, 'input').some((item) => {
    const type = fieldOf(item, 'type');
    const id = fieldOf(item, 'call_id');
    if (type === 'function_call' || type === 'custom_tool_call') called.add(id);
    const is_output = type === 'function_call_output' || type === 'custom_tool_call_output';
    return is_output && !called.has(id);
  });
}
