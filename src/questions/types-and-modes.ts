/** The types and modes without their schemas, so that pages that only name them load no schema library. */

/** The types of questions, in the order of documentation and reports. */
export const QUESTION_TYPES = ['noul', 'choice', 'score'] as const;
export type QuestionType = (typeof QUESTION_TYPES)[number];

/** The two modes of reading a record: once for all questions, or again with each question. */
export const MODES = ['fast', 'consistent'] as const;
export type Mode = (typeof MODES)[number];

/** Returns true for the name of a type. */
export function isQuestionType(value: unknown): value is QuestionType {
  return QUESTION_TYPES.some((type) => type === value);
}

/** Returns true for the name of a mode. */
export function isMode(value: unknown): value is Mode {
  return MODES.some((mode) => mode === value);
}
