/** What a question's correction is fitted on: a record whose answer is known. Classes are those of `identityOf`. */
export interface LabelledExample {
  /** Stands for the record: whatever is of one record is in one fold. */
  readonly record: string;
  /** The scores of the model as it is, by class. */
  readonly scores: readonly number[];
  /** The share of each class among those who labelled it. */
  readonly target: readonly number[];
  /** The share of each class among the answers that are taken as right: one class, unless a record has two answers. */
  readonly answers: readonly number[];
  /** As of `recordWords`. */
  readonly words: Int32Array;
}
