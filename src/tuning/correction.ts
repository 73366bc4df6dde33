import { softmax } from '../questions/probabilities.ts';
import type { FittedPart } from './fitted-part.ts';
import type { LabelledExample } from './labelled-example.ts';
import { minimize } from './minimize.ts';
import { fittedShift, LEAST_DISTANCE, type ShiftPart, shiftedScores } from './shift-part.ts';
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

/** A correction with the parameters that it was made of, where another fit can begin. */
export interface FittedCorrection {
  readonly correction: Correction;
  readonly parameters: Float64Array;
}

/**
 * Returns the correction with the highest likelihood of the labels, less the penalties of its shape. `start` are the
 * parameters of a fit with the same parts on the same examples; it brings the same correction in fewer steps.
 */
export function fitCorrection(
  examples: readonly LabelledExample[],
  classes: number,
  { words_penalty, vector_penalty }: CorrectionShape,
  start?: Float64Array,
): FittedCorrection {
  const words = words_penalty === null ? undefined : fittedWords(examples, classes, words_penalty);
  const vector = vector_penalty === null ? undefined : fittedVector(examples, classes, vector_penalty);
  const fit = (shift: FittedPart<ShiftPart>, from?: Float64Array): FittedCorrection => {
    const parts: readonly FittedPart<unknown>[] = [shift, words, vector].filter((part) => part !== undefined);
    const viewsOf = viewsBy(parts);
    const parameters = mostLikely(examples, classes, parts, from ?? new Float64Array(viewsOf.size));
    const viewOf = (part: FittedPart<unknown>) => viewsOf.part(parameters, parts.indexOf(part));
    const correction = {
      ...shift.part(viewOf(shift)),
      words: words?.part(viewOf(words)) ?? null,
      vector: vector?.part(viewOf(vector)) ?? null,
    };
    return { correction, parameters };
  };
  const free = fit(fittedShift(examples, classes), start);
  if ((free.parameters[0] ?? 0) >= LEAST_DISTANCE) return free;
  // The loss is convex: the best of all corrections with an allowed scale has the least one.
  const least = free.parameters.slice();
  least[0] = LEAST_DISTANCE;
  return fit(fittedShift(examples, classes, true), least);
}

/** Returns how the parameters of parts lie one after the other. */
function viewsBy(parts: readonly FittedPart<unknown>[]) {
  const sizes = parts.map(({ penalties }) => penalties.length);
  const starts = sizes.map((_, part) => sizes.slice(0, part).reduce((sum, size) => sum + size, 0));
  return {
    size: sizes.reduce((sum, size) => sum + size, 0),
    part(parameters: Float64Array, part: number): Float64Array {
      const start = starts[part] ?? 0;
      return parameters.subarray(start, start + (sizes[part] ?? 0));
    },
  };
}

/** Returns the parameters of the highest likelihood, less the penalties. */
function mostLikely(
  examples: readonly LabelledExample[],
  classes: number,
  parts: readonly FittedPart<unknown>[],
  start: Float64Array,
): Float64Array {
  const viewsOf = viewsBy(parts);
  const own = Float64Array.from(examples.flatMap((example) => example.scores));
  const targets = Float64Array.from(examples.flatMap(({ target }) => target));
  const scores = new Float64Array(own.length);
  return minimize((parameters, gradient) => {
    const views = parts.map((part, at) => ({
      part,
      parameters: viewsOf.part(parameters, at),
      gradient: viewsOf.part(gradient, at),
    }));
    let loss = 0;
    for (const view of views) loss += addPenalties(view.part.penalties, view.parameters, view.gradient);
    scores.set(own);
    for (const view of views) view.part.addScores(view.parameters, scores);
    loss += lossOf(scores, targets, classes);
    for (const view of views) view.part.addGradient(scores, view.gradient);
    return loss;
  }, start);
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
 * Returns the negative log-likelihood in nats of the examples' targets under their scores, and replaces the scores by
 * its gradient.
 */
function lossOf(scores: Float64Array, targets: Float64Array, classes: number): number {
  let loss = 0;
  for (let start = 0; start < scores.length; start += classes) {
    let highest = Number.NEGATIVE_INFINITY;
    for (let at = start; at < start + classes; at += 1) highest = Math.max(highest, scores[at] ?? 0);
    let sum = 0;
    for (let at = start; at < start + classes; at += 1) sum += Math.exp((scores[at] ?? 0) - highest);
    const scale = highest + Math.log(sum);
    for (let at = start; at < start + classes; at += 1) {
      const log_probability = (scores[at] ?? 0) - scale;
      const share = targets[at] ?? 0;
      loss -= share * log_probability;
      scores[at] = Math.exp(log_probability) - share;
    }
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
