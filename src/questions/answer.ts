import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { Written } from '../json/written.ts';
import { ChoiceAnswerSchema, choiceAnswer, choiceAnswerOf } from './choice.ts';
import { NoulAnswerSchema, noulAnswer, noulAnswerOf } from './noul.ts';
import { classesOf, classProbabilities, type Question, type QuestionType, scoreCount } from './question.ts';
import { ScoreAnswerSchema, scoreAnswer, scoreAnswerOf } from './score.ts';

/** The answers by type, in the order of the documentation. */
const ANSWER_SCHEMAS = {
  noul: NoulAnswerSchema,
  choice: ChoiceAnswerSchema,
  score: ScoreAnswerSchema,
} satisfies Record<QuestionType, TSchema>;

/** The answer to a question in a response. */
export const AnswerSchema = Type.Union(Object.values(ANSWER_SCHEMAS), { title: 'Answer' });
export type Answer = Static<typeof AnswerSchema>;
export type WrittenAnswer = Written<Answer>;

/**
 * Returns the answer to one question from the engine's calibrated scores. Throws `RangeError` for a wrong
 * number of scores (`scoreCount`), or for NaN.
 */
export function answerFrom(
  { question, threshold }: { readonly question: Question; readonly threshold: number | null },
  scores: readonly number[],
): WrittenAnswer {
  const expected = scoreCount(question);
  if (scores.length !== expected)
    throw new RangeError(`the model gave ${scores.length} scores and not ${expected}`);
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

/**
 * Returns the numbers of an answer, from which `answerOfNumbers` makes it again. The client sent all the
 * rest.
 */
export function numbersOf(answer: WrittenAnswer): number[] {
  switch (answer.type) {
    case 'noul':
      return [answer.noul];
    case 'choice':
    case 'score':
      return [...answer.probabilities.values];
  }
}

/**
 * Returns the answer whose numbers `numbersOf` gave, to the same question. Throws `RangeError` where the
 * question has another number of options.
 */
export function answerOfNumbers(
  { question, threshold }: { readonly question: Question; readonly threshold: number | null },
  numbers: readonly number[],
): WrittenAnswer {
  const expected = scoreCount(question);
  if (numbers.length !== expected)
    throw new RangeError(`the kept answer has ${numbers.length} numbers and not ${expected}`);
  switch (question.type) {
    case 'noul':
      return noulAnswerOf(numbers[0] ?? Number.NaN, threshold);
    case 'choice':
      return choiceAnswerOf(classesOf(question), numbers);
    case 'score':
      return scoreAnswerOf(question.levels, numbers);
  }
}
