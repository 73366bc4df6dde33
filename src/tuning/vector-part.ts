import { type FittedPart, keptNumber } from './fitted-part.ts';
import type { LabelledExample } from './labelled-example.ts';

/** The numbers of a hidden state: `STATE_SIZE` of the engine. */
export const VECTOR_SIZE = 192;

/** The contribution of the hidden states at the model's reads to the scores. */
export interface VectorPart {
  /** For each class with a hidden state, the product of its weights with the mean state, which is subtracted. */
  readonly centres: readonly number[];
  /** `weights[i * VECTOR_SIZE + k]` is the weight of number `k` in the state of class `i` of `centres`. */
  readonly weights: readonly number[];
}

/** Adds the contribution of a record's hidden states, one after the other in the order of the classes. */
export function addVectorScores(
  { centres, weights }: VectorPart,
  states: ArrayLike<number>,
  scores: Float64Array,
): void {
  centres.forEach((centre, state) => {
    // The classes with a hidden state are the last ones, because no comes before yes.
    const at = scores.length - centres.length + state;
    const start = state * VECTOR_SIZE;
    let sum = (scores[at] ?? 0) - centre;
    for (let number = start; number < start + VECTOR_SIZE; number += 1) {
      sum += (weights[number] ?? 0) * (states[number] ?? Number.NaN);
    }
    scores[at] = sum;
  });
}

/** The mean of some states, and the inverse of their usual distance from it. */
interface Spread {
  readonly mean: Float64Array;
  readonly scale: number;
}

function spreadOf(states: readonly ArrayLike<number>[]): Spread {
  const mean = new Float64Array(states[0]?.length ?? 0);
  for (const own of states) {
    for (let at = 0; at < mean.length; at += 1) mean[at] = (mean[at] ?? 0) + (own[at] ?? 0) / states.length;
  }
  let squares = 0;
  for (const own of states) {
    for (let at = 0; at < mean.length; at += 1) squares += ((own[at] ?? 0) - (mean[at] ?? 0)) ** 2;
  }
  const distance = Math.sqrt((squares * VECTOR_SIZE) / (states.length * mean.length));
  return { mean, scale: distance > 0 ? 1 / distance : 0 };
}

/**
 * Returns the part for fitting. Its parameters are ordered as `VectorPart.weights`, for states that are standardized by
 * the examples: their mean is 0, and their usual length 1. All have the same penalty.
 */
export function fittedVector(
  examples: readonly LabelledExample[],
  classes: number,
  penalty: number,
): FittedPart<VectorPart> {
  const states = examples.map((example) => example.states ?? []);
  const { mean, scale } = spreadOf(states);
  const count = mean.length / VECTOR_SIZE;
  return {
    penalties: new Float64Array(mean.length).fill(penalty),
    addScores(parameters, index, scores) {
      const own = states[index] ?? [];
      for (let at = 0; at < mean.length; at += 1) {
        const place = classes - count + Math.floor(at / VECTOR_SIZE);
        const value = scale * ((own[at] ?? 0) - (mean[at] ?? 0));
        scores[place] = (scores[place] ?? 0) + value * (parameters[at] ?? 0);
      }
    },
    addGradient(errors, index, gradient) {
      const own = states[index] ?? [];
      for (let at = 0; at < mean.length; at += 1) {
        const place = classes - count + Math.floor(at / VECTOR_SIZE);
        const value = scale * ((own[at] ?? 0) - (mean[at] ?? 0));
        gradient[at] = (gradient[at] ?? 0) + value * (errors[place] ?? 0);
      }
    },
    part(parameters) {
      const weights = Array.from(parameters, (parameter) => keptNumber(scale * parameter));
      const centres = Array.from({ length: count }, (_, state) => {
        const start = state * VECTOR_SIZE;
        const own = weights.slice(start, start + VECTOR_SIZE);
        return keptNumber(own.reduce((sum, weight, at) => sum + weight * (mean[start + at] ?? 0), 0));
      });
      return { centres, weights };
    },
  };
}
