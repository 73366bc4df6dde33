/**
 * An example for fitting a question's correction: a record with a known answer. Classes are those of
 * `identityOf`.
 */
export interface LabelledExample {
  /** Identifies the record: all examples of one record are in one fold. */
  readonly record: string;
  /** The scores of the uncorrected model, by class. */
  readonly scores: readonly number[];
  /** The share of each class among the annotators. */
  readonly target: readonly number[];
  /** The share of each class among the right answers: one class, unless a record has two answers. */
  readonly answers: readonly number[];
  /** As of `recordWords`. */
  readonly words: Int32Array;
  /** As of `classStates`; null where they are unknown. */
  readonly states: Float32Array | null;
}
