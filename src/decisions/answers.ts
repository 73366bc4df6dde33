import { JsonObject, type JsonValue } from '../json/json-value.ts';
import type { AskedQuestion } from './request.ts';
import type { NoulAnswer, WrittenAnswer, WrittenChoiceAnswer, WrittenScoreAnswer } from './schemas.ts';

/** A yes/no answer is never between these two (spec, "Answer: noul"). */
const COMMITTED_NO_MAX = 0.199;
const COMMITTED_YES_MIN = 0.801;

/** Probabilities are given in millionths: fine enough that rounding makes no ties that matter. */
const PARTS = 1_000_000;

/** The answer to one question from the engine's calibrated scores (one for a noul, one an option otherwise). */
export function answerFrom(asked: AskedQuestion, scores: readonly number[]): WrittenAnswer {
  switch (asked.question.type) {
    case 'noul':
      return noulAnswer(sigmoid(scores[0] ?? Number.NaN), asked.threshold);
    case 'choice':
      return choiceAnswer(
        asked.question.options.map((option) => option.id),
        softmax(scores),
      );
    case 'score':
      return scoreAnswer(asked.question.levels, softmax(scores));
  }
}

/** A committed yes/no answer: p below 0.5 maps linearly onto [0, 0.199], the rest onto [0.801, 1]. */
export function noulAnswer(probability: number, threshold: number | null): NoulAnswer {
  assertProbability(probability);
  const committed =
    probability < 0.5
      ? (probability / 0.5) * COMMITTED_NO_MAX
      : COMMITTED_YES_MIN + ((probability - 0.5) / 0.5) * (1 - COMMITTED_YES_MIN);
  const noul = roundToParts(committed);
  return threshold === null
    ? { type: 'noul', noul }
    : { type: 'noul', noul, threshold, decision: noul >= threshold };
}

/** One of the options; `probabilities` belong to `ids` by position and sum to 1. */
export function choiceAnswer(ids: readonly string[], probabilities: readonly number[]): WrittenChoiceAnswer {
  const rounded = roundToSumOne(probabilities);
  const { index, value } = largest(rounded);
  const even = 1 / ids.length;
  const choice = ids[index];
  if (choice === undefined) throw new RangeError('a choice needs a probability for every option');
  return {
    type: 'choice',
    choice,
    probabilities: new JsonObject(ids, rounded),
    confidence: roundToParts(Math.min(1, Math.max(0, (value - even) / (1 - even)))),
  };
}

/** A level; `score` is the weighted mean of the probabilities as they are returned. */
export function scoreAnswer(
  levels: readonly JsonValue[],
  probabilities: readonly number[],
): WrittenScoreAnswer {
  const rounded = roundToSumOne(probabilities);
  const indexes = levels.map((_, level) => String(level));
  const mean = rounded.reduce((sum, probability, level) => sum + level * probability, 0);
  return {
    type: 'score',
    score: roundToParts(mean),
    probabilities: new JsonObject(indexes, rounded),
    // A level as it was sent, whatever JSON it is (spec, "Answer: score"). Clients read no null here: the model read ''.
    legend: new JsonObject(
      indexes,
      levels.map((level) => level ?? ''),
    ),
    confidence: largest(rounded).value,
  };
}

/** The logistic function, without overflow for any finite score. */
export function sigmoid(score: number): number {
  return score >= 0 ? 1 / (1 + Math.exp(-score)) : Math.exp(score) / (1 + Math.exp(score));
}

/** Probabilities that sum to 1, in proportion to the exponentials of the scores. */
export function softmax(scores: readonly number[]): number[] {
  const highest = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/**
 * The probabilities in whole millionths that sum to exactly one: each is rounded down, and what is left goes to the
 * largest remainders, so that a larger probability never becomes the smaller one.
 */
export function roundToSumOne(probabilities: readonly number[]): number[] {
  for (const probability of probabilities) assertProbability(probability);
  const parts = probabilities.map((probability) => Math.floor(probability * PARTS));
  const missing = PARTS - parts.reduce((sum, part) => sum + part, 0);
  const byRemainder = probabilities
    .map((probability, index) => ({
      index,
      probability,
      remainder: probability * PARTS - Math.floor(probability * PARTS),
    }))
    // Two that differ in their last bit only can have the same remainder.
    .sort((a, b) => b.remainder - a.remainder || b.probability - a.probability || a.index - b.index);
  for (const { index } of byRemainder.slice(0, Math.max(0, missing))) parts[index] = (parts[index] ?? 0) + 1;
  // Products that round up to whole parts can add up to one part too many.
  if (missing < 0) parts[largest(parts).index] = largest(parts).value + missing;
  return parts.map((part) => part / PARTS);
}

function roundToParts(value: number): number {
  return Math.round(value * PARTS) / PARTS;
}

function largest(values: readonly number[]): { readonly index: number; readonly value: number } {
  let index = 0;
  values.forEach((value, position) => {
    if (value > (values[index] ?? Number.NEGATIVE_INFINITY)) index = position;
  });
  return { index, value: values[index] ?? 0 };
}

/** A model that gives something that is not a number has not answered. */
function assertProbability(value: number): void {
  if (!(value >= 0 && value <= 1)) throw new RangeError('the model gave a score that is not a number');
}
