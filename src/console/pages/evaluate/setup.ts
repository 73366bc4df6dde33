import type { RunSetup } from '../rows/run-setup.ts';

/** The columns of a table that the labels are in. */
export interface LabelColumns {
  /** The column with the record; null for all columns that have no label, as one object. */
  readonly record: string | null;
  /** The column with the id of a row's only question; null where each question has a column of its own. */
  readonly question: string | null;
  /** The column with the right answer to that only question. */
  readonly answer: string | null;
  /** The column of each question's answers, by the question's id. */
  readonly answers: Readonly<Record<string, string>>;
}

/** The choices for an evaluation, beside its rows. */
export interface EvaluationSetup extends RunSetup {
  readonly columns: LabelColumns;
}
