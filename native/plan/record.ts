import type { JsonValue } from '../../src/json/json-value.ts';
import { PlanRejected } from '../errors.ts';
import { CharacterBudget, TextTooLong } from './character-budget.ts';
import type { TokensOf } from './question-texts.ts';
import { recordText } from './render.ts';
import { recordWindows } from './shorten.ts';

/**
 * Characters that a record may be rendered to: four times the largest body, which indentation alone does not reach in
 * ordinary records.
 */
export const RECORD_CHARACTERS_MAX = 2 ** 22;

/** What is tokenized of a record. */
export interface RecordTexts {
  /** Their tokens, one after the other, are those of the record, as far as they are needed; see `recordWindows`. */
  readonly windows: readonly string[];
  /** How much text between them is not looked at. */
  readonly characters_between: number;
}

/** A record as far as it was tokenized. */
export interface RecordTokens {
  readonly tokens: readonly number[];
  /** Those of the whole record: an estimate where its middle was not looked at. */
  readonly count: number;
}

/**
 * The texts that are tokenized of a record. The caller cuts their tokens to its own room of at most `most_tokens`.
 * Throws `PlanRejected` for a value that is rendered to many times the characters that it came in.
 */
export function readRecord(state: JsonValue, most_tokens: number): RecordTexts {
  try {
    const text = recordText(state, new CharacterBudget(RECORD_CHARACTERS_MAX));
    const windows = recordWindows(text, most_tokens);
    return { windows, characters_between: text.length - charactersOf(windows) };
  } catch (error) {
    if (!(error instanceof TextTooLong)) throw error;
    throw new PlanRejected(
      `The record has more than ${RECORD_CHARACTERS_MAX} characters as text: send it less deeply nested, or as a string.`,
      null,
    );
  }
}

/** The record in tokens. What is between its windows is taken to have as many for each character as they have. */
export function recordTokens({ windows, characters_between }: RecordTexts, tokensOf: TokensOf): RecordTokens {
  const tokens = windows.flatMap(tokensOf);
  if (characters_between === 0) return { tokens, count: tokens.length };
  const between = Math.ceil((characters_between * tokens.length) / charactersOf(windows));
  return { tokens, count: tokens.length + between };
}

function charactersOf(windows: readonly string[]): number {
  return windows.reduce((sum, { length }) => sum + length, 0);
}
