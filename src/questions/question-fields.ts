import { Type } from '@sinclair/typebox';
import { isJsonArray, isJsonObject, type JsonValue, kindOf } from '../json/json-value.ts';

/** What the question types share: schemas of common fields, the bounds of options, and how a question is read. */

export const OPTIONS_MIN = 2;
export const OPTIONS_MAX = 255;

/** Any text as a key, also with line breaks, which TypeBox's own pattern excludes. */
export const AnyKey = Type.String({ pattern: '^[\\s\\S]*$' });

export const Probability = Type.Number({ minimum: 0, maximum: 1 });

/** A description may be any JSON value; a string is what clients normally send. */
export const Description = Type.Unknown({
  description: 'A short description; any JSON value, normally a string.',
});

export const Instructions = Type.Optional(
  Type.Unknown({
    description: 'The question, in plain English, answerable from the record alone. Normally a string.',
  }),
);

/** A question of one type, as it was read from a request's body. */
export interface ParsedQuestion<Asked> {
  readonly question: Asked;
  /** Where a yes/no answer becomes a decision; null for none, and for types that have no threshold. */
  readonly threshold: number | null;
  /** Why the model will reject the question although its fields are in order; null normally. */
  readonly rejection: string | null;
}

/** Why criteria do not fit the type of their question (`invalid_criteria`), for the client to read. */
export class InvalidCriteria {
  constructor(readonly message: string) {}
}

/** What the criteria of a question are, in a message that says what they should be. Quotes nothing of them. */
export function describeCriteria(criteria: JsonValue | undefined): string {
  if (criteria === undefined) return 'it has no criteria';
  if (isJsonObject(criteria)) return `its criteria are an object of ${criteria.names.length}`;
  if (isJsonArray(criteria)) return `its criteria are an array of ${criteria.length}`;
  return `its criteria are ${kindOf(criteria)}`;
}

/** Whether a question may have so many options or levels (contract: 2 to 255, else `invalid_criteria`). */
export function isOptionCount(count: number): boolean {
  return count >= OPTIONS_MIN && count <= OPTIONS_MAX;
}
