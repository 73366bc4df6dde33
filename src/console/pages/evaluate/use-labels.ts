import { useMemo } from 'preact/hooks';
import { objectIn } from '../object-in.ts';
import type { AskedQuestion } from '../playground/asked.ts';
import { askedIn, questionComplaint } from '../rows/questions.ts';
import type { RowFile } from '../rows/row-file.ts';
import { isCasesFile, type LabelledRows, labelsOfCases, labelsOfTable } from './labels.ts';
import type { EvaluationSetup } from './setup.ts';

/** The labels of a file, and the questions that they answer. */
export interface FileLabels extends LabelledRows {
  /** True where the questions are in the file. */
  readonly is_cases: boolean;
  /** The chosen questions. */
  readonly asked: readonly AskedQuestion[];
  /** Why the chosen questions cannot be asked. */
  readonly complaint: string | undefined;
}

/** Reads the labels of a file again when a choice changes. */
export function useLabels(file: RowFile | null, { questions, columns }: EvaluationSetup): FileLabels {
  const is_cases = useMemo(() => file !== null && isCasesFile(file), [file]);
  const asked = useMemo(() => askedIn(questions), [questions]);
  const labelled = useMemo((): LabelledRows => {
    const body = objectIn(questions?.body ?? '');
    if (file !== null && is_cases) return labelsOfCases(file);
    return file === null || body === null ? { rows: [], problems: [] } : labelsOfTable(file, body, columns);
  }, [file, is_cases, questions, columns]);
  const complaint = useMemo(() => {
    const body = objectIn(questions?.body ?? '');
    return is_cases || body === null ? undefined : questionComplaint(body);
  }, [is_cases, questions]);
  return { ...labelled, is_cases, asked, complaint };
}
