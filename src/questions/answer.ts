import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { Written } from '../json/written.ts';
import { ChoiceAnswerSchema, choiceAnswer } from './choice.ts';
import { NoulAnswerSchema, noulAnswer } from './noul.ts';
import { classesOf, classProbabilities, type Question, type QuestionType } from './question.ts';
import { ScoreAnswerSchema, scoreAnswer } from './score.ts';

/** In the order in which the types are documented. */
const ANSWER_SCHEMAS = {
  noul: NoulAnswerSchema,
  choice: ChoiceAnswerSchema,
  score: ScoreAnswerSchema,
} satisfies Record<QuestionType, TSchema>;

/** The answer to a question in a response. */
export const AnswerSchema = Type.Union(Object.values(ANSWER_SCHEMAS));
export type Answer = Static<typeof AnswerSchema>;
export type WrittenAnswer = Written<Answer>;

/**
 * The answer to one question from the engine's calibrated scores, of which there are `scoreCount`. Throws `RangeError`
 * where a score is NaN or missing.
 */
export function answerFrom(
  { question, threshold }: { readonly question: Question; readonly threshold: number | null },
  scores: readonly number[],
): WrittenAnswer {
  const probabilities = classProbabilities(question, scores);
  switch (question.type) {
    case 'noul':
      return noulAnswer(probabilities[1] ?? Number.NaN, threshold);
    case 'choice':
      return choiceAnswer(classesOf(question), probabilities);
    case 'score':
      return scoreAnswer(question.levels, probabilities);
  }
}
