import type { Mode } from '../../../questions/question.ts';

/** Questions that were chosen for the rows of a file: a copy, which stays when the saved request is gone. */
export interface ChosenQuestions {
  /** Where they are from, as the value of the choice. */
  readonly value: string;
  readonly label: string;
  /** In JSON: an object of JavaScript would not keep the order of all options. */
  readonly body: string;
}

/** The choices for a run over the rows of a file. */
export interface RunSetup {
  /** Random, and known to this browser only: rows that are sent again with it are not charged again. */
  readonly run_key: string;
  readonly questions: ChosenQuestions | null;
  readonly model: string;
  readonly mode: Mode;
  readonly project_id: string;
  readonly key_id: string | null;
}

const RUN_KEY_BYTES = 32;

/** Returns a key that nobody can guess. */
export function newRunKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(RUN_KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
