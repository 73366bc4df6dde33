import type { Mode } from '../../../questions/question.ts';
import type { TypeTemperatures } from '../../../questions/temperatures.ts';
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

/** The facts about the tuned model that its tuning is bound to. */
export interface TuningBase {
  readonly weights_sha256: string;
  readonly profile: string;
  readonly temperatures: Readonly<Record<Mode, TypeTemperatures>> | null;
}

/** The choices for an evaluation, beside its rows. */
export interface EvaluationSetup extends RunSetup {
  readonly columns: LabelColumns;
  /**
   * The facts of the model when the run began, which a tuning on its answers is bound to. Absent until they are known, and
   * for a model that cannot be tuned.
   */
  readonly base?: TuningBase | undefined;
}
