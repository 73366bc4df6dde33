import { softmax } from '../questions/probabilities.ts';
import type { FittedPart } from './fitted-part.ts';
import type { LabelledExample } from './labelled-example.ts';
import { minimize } from './minimize.ts';
import { fittedShift, type ShiftPart, shiftedScores } from './shift-part.ts';
import { addVectorScores, fittedVector, type VectorPart } from './vector-part.ts';
import { addWordScores, fittedWords, type WordsPart } from './words-part.ts';

/** The correction of the scores of one question. */
export interface Correction extends ShiftPart {
  readonly words: WordsPart | null;
  readonly vector: VectorPart | null;
}

/** The parts of a correction, and the penalty of each. */
export interface CorrectionShape {
  /** Null for no words. */
  readonly words_penalty: number | null;
  /** Null for no vector. All examples of one with a vector need hidden states. */
  readonly vector_penalty: number | null;
}

/** Returns the names of a correction's parts, for tables. */
export function partsOf({ words, vector }: Correction): readonly string[] {
  return ['shift', ...(words === null ? [] : ['words']), ...(vector === null ? [] : ['vector'])];
}

/** Returns the corrected scores by class; `scores` are those of the uncorrected model. */
export function correctedScores(
  correction: Correction,
  { scores, words, states }: Pick<LabelledExample, 'scores' | 'words' | 'states'>,
): Float64Array {
  const corrected = shiftedScores(correction, scores);
  if (correction.words !== null) addWordScores(correction.words, words, corrected);
  if (correction.vector !== null) addVectorScores(correction.vector, states ?? [], corrected);
  return corrected;
}

/** Returns the correction with the highest likelihood of the labels, less the penalties of its shape. */
export function fitCorrection(
  examples: readonly LabelledExample[],
  classes: number,
  { words_penalty, vector_penalty }: CorrectionShape,
): Correction {
  const shift = fittedShift(examples, classes);
  const words = words_penalty === null ? undefined : fittedWords(examples, classes, words_penalty);
  const vector = vector_penalty === null ? undefined : fittedVector(examples, classes, vector_penalty);
  const parts: readonly FittedPart<unknown>[] = [shift, words, vector].filter((part) => part !== undefined);
  const starts = parts.map((_, part) =>
    parts.slice(0, part).reduce((sum, { penalties }) => sum + penalties.length, 0),
  );
  const viewOf = (parameters: Float64Array, part: number) => {
    const start = starts[part] ?? 0;
    return parameters.subarray(start, start + (parts[part]?.penalties.length ?? 0));
  };
  const size = parts.reduce((sum, { penalties }) => sum + penalties.length, 0);
  const scores = new Float64Array(classes);
  const best = minimize((parameters, gradient) => {
    const views = parts.map((part, at) => ({
      part,
      parameters: viewOf(parameters, at),
      gradient: viewOf(gradient, at),
    }));
    let loss = 0;
    for (const view of views) loss += addPenalties(view.part.penalties, view.parameters, view.gradient);
    for (const [index, { scores: own, target }] of examples.entries()) {
      scores.set(own);
      for (const view of views) view.part.addScores(view.parameters, index, scores);
      loss += lossOf(scores, target);
      for (const view of views) view.part.addGradient(scores, index, view.gradient);
    }
    return loss;
  }, new Float64Array(size));
  return {
    ...shift.part(viewOf(best, 0)),
    words: words?.part(viewOf(best, parts.indexOf(words))) ?? null,
    vector: vector?.part(viewOf(best, parts.indexOf(vector))) ?? null,
  };
}

/**
 * Returns half of the sum of each parameter's square times its penalty; its gradient replaces that in
 * `gradient`.
 */
function addPenalties(penalties: Float64Array, parameters: Float64Array, gradient: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < parameters.length; at += 1) {
    const pull = (penalties[at] ?? 0) * (parameters[at] ?? 0);
    gradient[at] = pull;
    sum += (pull * (parameters[at] ?? 0)) / 2;
  }
  return sum;
}

/** The smallest probability whose logarithm is taken. */
const PROBABILITY_MIN = 1e-12;

/**
 * Returns the negative log-likelihood in nats of a target under scores, and replaces the scores by its
 * gradient.
 */
function lossOf(scores: Float64Array, target: readonly number[]): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (const score of scores) highest = Math.max(highest, score);
  let sum = 0;
  for (const score of scores) sum += Math.exp(score - highest);
  let loss = 0;
  for (let at = 0; at < scores.length; at += 1) {
    const log_probability = (scores[at] ?? 0) - highest - Math.log(sum);
    const share = target[at] ?? 0;
    loss -= share * log_probability;
    scores[at] = Math.exp(log_probability) - share;
  }
  return loss;
}

/** Returns the negative log-likelihood in nats of an example's labels under scores by class. */
export function exampleLoss(scores: ArrayLike<number>, target: readonly number[]): number {
  const probabilities = softmax(Array.from(scores));
  return target.reduce(
    (sum, share, at) =>
      share === 0 ? sum : sum - share * Math.log(Math.max(PROBABILITY_MIN, probabilities[at] ?? 0)),
    0,
  );
}
