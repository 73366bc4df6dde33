import { Type } from '@sinclair/typebox';
import { isJsonArray, isJsonObject, type JsonValue, kindOf } from '../json/json-value.ts';

/** The common parts of the question types: schemas of fields, the bounds of options, and parsed questions. */

export const OPTIONS_MIN = 2;
export const OPTIONS_MAX = 255;

/** The pattern of `AnyKey`. */
export const ANY_TEXT = '^[\\s\\S]*$';

/** Any text as a key, including line breaks, which TypeBox's own pattern excludes. */
export const AnyKey = Type.String({ pattern: ANY_TEXT });

export const Probability = Type.Number({ minimum: 0, maximum: 1 });

/** A description may be any JSON value; clients normally send a string. */
export const Description = Type.Unknown({
  description: 'A short description; any JSON value, normally a string.',
});

export const Instructions = Type.Optional(
  Type.Unknown({
    description: 'The question, in plain English, answerable from the record alone. Normally a string.',
  }),
);

/** A parsed question of one type. */
export interface ParsedQuestion<Asked> {
  readonly question: Asked;
  /** The threshold of a yes/no decision; null for none, and for types without thresholds. */
  readonly threshold: number | null;
  /** The reason why the model will reject the question although its fields are valid; normally null. */
  readonly rejection: string | null;
}

/**
 * The reason why criteria do not fit the type of their question (`invalid_criteria`), as a message for the
 * client.
 */
export class InvalidCriteria {
  constructor(readonly message: string) {}
}

/** Describes the kind of a question's criteria, for a message. Quotes nothing of them. */
export function describeCriteria(criteria: JsonValue | undefined): string {
  if (criteria === undefined) return 'it has no criteria';
  if (isJsonObject(criteria)) return `its criteria are an object of ${criteria.names.length}`;
  if (isJsonArray(criteria)) return `its criteria are an array of ${criteria.length}`;
  return `its criteria are ${kindOf(criteria)}`;
}

/** Returns true for an allowed number of options or levels (contract: 2 to 255, else `invalid_criteria`). */
export function isOptionCount(count: number): boolean {
  return count >= OPTIONS_MIN && count <= OPTIONS_MAX;
}
