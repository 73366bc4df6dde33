import { type FittedPart, keptNumber } from './fitted-part.ts';
import type { LabelledExample } from './labelled-example.ts';

/** The numbers of a hidden state: `STATE_SIZE` of the engine. A multiple of 4 (`product`). */
export const VECTOR_SIZE = 576;

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
  readonly mean: Float32Array;
  readonly scale: number;
}

function spreadOf(states: readonly Float32Array[]): Spread {
  const size = states[0]?.length ?? 0;
  const sums = new Float64Array(size);
  for (const own of states) for (let at = 0; at < size; at += 1) sums[at] = (sums[at] ?? 0) + (own[at] ?? 0);
  const mean = Float32Array.from(sums, (sum) => sum / states.length);
  let squares = 0;
  for (const own of states) {
    for (let at = 0; at < size; at += 1) squares += ((own[at] ?? 0) - (mean[at] ?? 0)) ** 2;
  }
  const distance = Math.sqrt((squares * VECTOR_SIZE) / (states.length * size));
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
  const states = examples.map((example) => example.states ?? NONE);
  const { mean, scale } = spreadOf(states);
  const count = mean.length / VECTOR_SIZE;
  return {
    penalties: new Float64Array(mean.length).fill(penalty),
    addScores(parameters, scores) {
      for (let state = 0; state < count; state += 1) {
        const start = state * VECTOR_SIZE;
        const place = classes - count + state;
        const centre = product(parameters, mean, start);
        for (let example = 0; example < states.length; example += 1) {
          const at = example * classes + place;
          const own = product(parameters, states[example] ?? NONE, start);
          scores[at] = (scores[at] ?? 0) + scale * (own - centre);
        }
      }
    },
    addGradient(errors, gradient) {
      for (let state = 0; state < count; state += 1) {
        const start = state * VECTOR_SIZE;
        const place = classes - count + state;
        let sum = 0;
        for (let example = 0; example < states.length; example += 1) {
          const error = scale * (errors[example * classes + place] ?? 0);
          sum += error;
          addTimes(gradient, error, states[example] ?? NONE, start);
        }
        addTimes(gradient, -sum, mean, start);
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

const NONE = new Float32Array();

/** Returns the product of one class's parameters with its state. Four sums at once take half of the time of one. */
function product(parameters: Float64Array, states: Float32Array, start: number): number {
  let [one, two, three, four] = [0, 0, 0, 0];
  for (let at = start; at < start + VECTOR_SIZE; at += 4) {
    one += (parameters[at] ?? 0) * (states[at] ?? 0);
    two += (parameters[at + 1] ?? 0) * (states[at + 1] ?? 0);
    three += (parameters[at + 2] ?? 0) * (states[at + 2] ?? 0);
    four += (parameters[at + 3] ?? 0) * (states[at + 3] ?? 0);
  }
  return one + two + three + four;
}

/** Adds a multiple of one class's state to its part of the gradient. */
function addTimes(gradient: Float64Array, times: number, states: Float32Array, start: number): void {
  for (let at = start; at < start + VECTOR_SIZE; at += 1) {
    gradient[at] = (gradient[at] ?? 0) + times * (states[at] ?? 0);
  }
}
