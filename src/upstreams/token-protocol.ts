import { isJsonArray, type JsonValue } from '../json/json-value.ts';
import { WrongAnswer } from './wrong-answer.ts';

/** The bias of every wanted token: far above all logits, and small enough for their differences in 32 bits. */
export const WANTED_BIAS = 100;

/** A token of which the probability is wanted. */
export interface WantedToken {
  readonly id: number;
  /** As `ScoringPlanner.wordOf`. */
  readonly word: string | null;
}

/** What is asked in one call: how likely each wanted token is to come after the prompt. */
export interface TokenQuestion {
  readonly prompt: readonly number[];
  /** Each once. */
  readonly wanted: readonly WantedToken[];
  /** What the server calls the model; null where a request names none. */
  readonly model: string | null;
  /** Whose prompt it is: a server that can, reuses nothing of it for others. */
  readonly scope: string;
  /** Whether words are asked for in the place of ids: a server with another vocabulary is found by that. */
  readonly by_word: boolean;
}

/** What a server says to a `TokenQuestion`. */
export interface TokenAnswer {
  /** The logit of each wanted token, all of them less the same number. */
  readonly logits: readonly number[];
  /** What the answer says of the model that gave it; empty where it says nothing. */
  readonly fingerprint: string;
}

/** How a server is asked for the probabilities of tokens. Pure. */
export interface TokenProtocol {
  readonly path: string;
  /** Wanted tokens of one call. */
  readonly wanted_max: number;
  /** Whether calls with the same beginning may run side by side once one of them has been answered. */
  readonly is_parallel: boolean;
  /** Said of a server that does not take the trial question. */
  readonly needs: string;
  body(question: TokenQuestion): string;
  /** Throws `WrongAnswer`, also where the answer lacks a wanted token. */
  read(text: string, question: TokenQuestion): TokenAnswer;
}

/** The only item of a list. */
export function onlyItem(value: JsonValue | undefined): JsonValue | undefined {
  return isJsonArray(value) && value.length === 1 ? value[0] : undefined;
}

/** Throws `WrongAnswer` unless the server says that it read exactly the prompt, or says nothing of it. */
export function requirePromptRead(tokens: JsonValue | undefined, { prompt }: TokenQuestion): void {
  if (tokens === undefined || tokens === prompt.length) return;
  throw new WrongAnswer('It has read another number of tokens than it was sent.');
}

/** The logits in the order of the wanted tokens, from those that were found. Throws `WrongAnswer`. */
export function logitsInOrder(
  { wanted }: TokenQuestion,
  found: ReadonlyMap<number, number>,
  missing?: number,
): readonly number[] {
  return wanted.map(({ id }) => {
    const logit = found.get(id) ?? missing;
    if (logit === undefined) throw new WrongAnswer(NOT_THE_WANTED);
    return logit;
  });
}

export const NOT_THE_WANTED = 'It does not return the probabilities of the wanted tokens.';
export const OTHER_VOCABULARY =
  'It has other words for the tokens than the vocabulary file: give the GGUF of its model.';
