/**
 * A part of a correction while it is fitted: parameters, and what they add to the scores of each example. All parts are
 * linear in their parameters, so that the loss has one minimum.
 */
export interface FittedPart<Part> {
  /** Half of its product with a parameter's square is added to the loss; one for each parameter. */
  readonly penalties: Float64Array;
  /** Adds what the parameters make of example `index` to its scores by class. */
  addScores(parameters: Float64Array, index: number, scores: Float64Array): void;
  /** Adds the gradient of an example's loss; `errors` is the loss's gradient by its scores. */
  addGradient(errors: Float64Array, index: number, gradient: Float64Array): void;
  /** The part as it is kept, without the examples. */
  part(parameters: Float64Array): Part;
}

/** A parameter as it is kept: five digits are finer than any label can tell. */
export function keptNumber(value: number): number {
  return Number(value.toPrecision(5));
}
