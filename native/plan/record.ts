import type { JsonValue } from '../../src/json/json-value.ts';
import { PlanRejected } from '../errors.ts';
import type { TokensOf } from './question-texts.ts';
import { CharacterBudget, recordText, TextTooLong } from './render.ts';
import { recordWindows } from './shorten.ts';

/**
 * The largest number of characters of a rendered record: four times the largest body. Indentation of ordinary records
 * does not reach it.
 */
export const RECORD_CHARACTERS_MAX = 2 ** 22;

/** The texts of a record to tokenize. */
export interface RecordTexts {
  /** The texts whose tokens in order are the needed ones of the record; see `recordWindows`. */
  readonly windows: readonly string[];
  /** The number of characters between them that are not tokenized. */
  readonly characters_between: number;
}

/** The tokenized part of a record. */
export interface RecordTokens {
  readonly tokens: readonly number[];
  /** The number of the whole record's tokens: an estimate if its middle was not tokenized. */
  readonly count: number;
}

/**
 * Returns the texts of a record to tokenize. The caller cuts their tokens to its own room of at most `most_tokens`.
 * Throws `PlanRejected` for a value whose rendering is many times its JSON.
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

/** Returns the record's tokens. The count assumes as many tokens a character between the windows as in them. */
export function recordTokens({ windows, characters_between }: RecordTexts, tokensOf: TokensOf): RecordTokens {
  const tokens = windows.flatMap(tokensOf);
  if (characters_between === 0) return { tokens, count: tokens.length };
  const between = Math.ceil((characters_between * tokens.length) / charactersOf(windows));
  return { tokens, count: tokens.length + between };
}

function charactersOf(windows: readonly string[]): number {
  return windows.reduce((sum, { length }) => sum + length, 0);
}
