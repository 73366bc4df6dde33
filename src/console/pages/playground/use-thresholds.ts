import { useState } from 'preact/hooks';
import { THRESHOLD_DEFAULT } from './question-fields.tsx';
import type { WrittenRequest } from './use-request.ts';
import type { Comparison } from './use-runs.ts';

/** The thresholds that are tried on the answers of a comparison. */
export interface Thresholds {
  readonly of: (question_id: string) => number;
  readonly set: (question_id: string, threshold: number) => void;
  /** Goes back to those that were asked with. */
  readonly reset: () => void;
}

/** Begins with the thresholds that were asked with. */
export function useThresholds(
  { draft, json, setDraft }: WrittenRequest,
  comparison: Comparison | undefined,
): Thresholds {
  const [tried, setTried] = useState<ReadonlyMap<string, number>>(new Map());
  const asked = (id: string) =>
    comparison?.questions.find((one) => one.id === id)?.threshold ?? THRESHOLD_DEFAULT;
  return {
    of: (id) => tried.get(id) ?? asked(id),
    set: (id, threshold) => {
      setTried(new Map(tried).set(id, threshold));
      // The threshold that was tried is asked with the next time, and taken along in code.
      const at = draft.questions.findIndex((question) => question.id === id);
      const question = draft.questions[at];
      if (json === null && question !== undefined) {
        setDraft({ ...draft, questions: draft.questions.with(at, { ...question, threshold }) });
      }
    },
    reset: () => setTried(new Map()),
  };
}
