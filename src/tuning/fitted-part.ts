/**
 * A part of a correction while it is fitted: its parameters add to the scores of the examples. All parts are
 * linear in their parameters, so that the loss has one minimum. Scores and errors are those of all examples, with a
 * number for every class of each. One call for all is several times as fast as a call for each.
 */
export interface FittedPart<Part> {
  /** The penalty of each parameter: half of its product with the parameter's square is added to the loss. */
  readonly penalties: Float64Array;
  /** Adds the part's contribution to the scores. */
  addScores(parameters: Float64Array, scores: Float64Array): void;
  /** Adds the gradient of the loss; `errors` is the loss's gradient by the scores. */
  addGradient(errors: Float64Array, gradient: Float64Array): void;
  /** Returns the part in its stored form, without the examples. */
  part(parameters: Float64Array): Part;
}

/** Rounds a parameter for storage: five digits are finer than any label can show. */
export function keptNumber(value: number): number {
  return Number(value.toPrecision(5));
}
