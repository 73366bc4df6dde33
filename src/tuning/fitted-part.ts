/**
 * A part of a correction while it is fitted: its parameters add to the scores of each example. All parts are
 * linear in their parameters, so that the loss has one minimum.
 */
export interface FittedPart<Part> {
  /** The penalty of each parameter: half of its product with the parameter's square is added to the loss. */
  readonly penalties: Float64Array;
  /** Adds the part's contribution for example `index` to its scores by class. */
  addScores(parameters: Float64Array, index: number, scores: Float64Array): void;
  /** Adds the gradient of an example's loss; `errors` is the loss's gradient by its scores. */
  addGradient(errors: Float64Array, index: number, gradient: Float64Array): void;
  /** Returns the part in its stored form, without the examples. */
  part(parameters: Float64Array): Part;
}

/** Rounds a parameter for storage: five digits are finer than any label can show. */
export function keptNumber(value: number): number {
  return Number(value.toPrecision(5));
}
