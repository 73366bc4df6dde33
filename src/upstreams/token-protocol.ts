import { isJsonArray, type JsonValue } from '../json/json-value.ts';
import { WrongAnswer } from './wrong-answer.ts';

/**
 * The bias of every wanted token: far above all logits, and small enough to keep their differences in 32
 * bits.
 */
export const WANTED_BIAS = 100;

/** A token whose probability is wanted. */
export interface WantedToken {
  readonly id: number;
  /** As `ScoringPlanner.wordOf`. */
  readonly word: string | null;
}

/** The question of one call: the probability of each wanted token after the prompt. */
export interface TokenQuestion {
  readonly prompt: readonly number[];
  /** The wanted tokens, each once. */
  readonly wanted: readonly WantedToken[];
  /** The servers' name of the model; null where requests name none. */
  readonly model: string | null;
  /** The owner of the prompt: a server that can do so reuses nothing of it for others. */
  readonly scope: string;
  /** True to ask for words instead of ids, which reveals a server with another vocabulary. */
  readonly by_word: boolean;
}

/** A server's answer to a `TokenQuestion`. */
export interface TokenAnswer {
  /** The logit of each wanted token, all less the same constant. */
  readonly logits: readonly number[];
  /** The answer's report about its model; empty where it has none. */
  readonly fingerprint: string;
}

/** The protocol for asking a server for the probabilities of tokens. Pure. */
export interface TokenProtocol {
  readonly path: string;
  /** The most wanted tokens of one call. */
  readonly wanted_max: number;
  /** True if calls with the same beginning may run concurrently once one of them has been answered. */
  readonly is_parallel: boolean;
  /** The requirement that is reported for a server that refuses the health probe. */
  readonly needs: string;
  body(question: TokenQuestion): string;
  /** Parses an answer. Throws `WrongAnswer`, also where the answer lacks a wanted token. */
  read(text: string, question: TokenQuestion): TokenAnswer;
}

/** Returns the only item of a list. */
export function onlyItem(value: JsonValue | undefined): JsonValue | undefined {
  return isJsonArray(value) && value.length === 1 ? value[0] : undefined;
}

/** Throws `WrongAnswer` if the server reports another number of tokens than the prompt has. */
export function requirePromptRead(tokens: JsonValue | undefined, { prompt }: TokenQuestion): void {
  if (tokens === undefined || tokens === prompt.length) return;
  throw new WrongAnswer('It has read another number of tokens than it was sent.');
}

/**
 * Throws `WrongAnswer` unless the probabilities, of which these are the logarithms, have a sum of that range.
 * Each alone may be right in a list that was cut, or in one of other numbers.
 */
export function requireSum(logarithms: Iterable<number>, least: number, most: number): void {
  let sum = 0;
  for (const logarithm of logarithms) sum += Math.exp(logarithm);
  if (!(sum >= least && sum <= most)) throw new WrongAnswer('The probabilities have no possible sum.');
}

/** Returns the logits in the order of the wanted tokens. Throws `WrongAnswer`. */
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
