import type { JsonValue } from '../../src/json/json-value.ts';
import { PlanRejected } from '../errors.ts';
import { CharacterBudget, TextTooLong } from './character-budget.ts';
import { recordText } from './render.ts';
import { recordWindows } from './shorten.ts';

/** Characters that a record may be rendered to: four times the largest body, which indentation alone does not reach in ordinary records. */
export const RECORD_CHARACTERS_MAX = 2 ** 22;

/**
 * The texts whose tokens, one after the other, are those of a record, for the caller to cut to its own room of at most
 * `most_tokens`; see `recordWindows`. Throws `PlanRejected` for a value that is rendered to many times the characters
 * that it came in.
 */
export function readRecord(state: JsonValue, most_tokens: number): readonly string[] {
  try {
    return recordWindows(recordText(state, new CharacterBudget(RECORD_CHARACTERS_MAX)), most_tokens);
  } catch (error) {
    if (!(error instanceof TextTooLong)) throw error;
    throw new PlanRejected(
      `The record has more than ${RECORD_CHARACTERS_MAX} characters as text: send it less deeply nested, or as a string.`,
      null,
    );
  }
}
