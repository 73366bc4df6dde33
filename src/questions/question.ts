import { type Static, Type } from '@sinclair/typebox';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import type { WritableJson } from '../json/write-json.ts';
import type { Written } from '../json/written.ts';
import { CHOICE, type ChoiceQuestion } from './choice.ts';
import { NOUL, type NoulQuestion } from './noul.ts';
import type { InvalidCriteria, ParsedQuestion } from './question-fields.ts';
import { SCORE, type ScoreQuestion } from './score.ts';
import type { QuestionTraits } from './type-definition.ts';
import { isQuestionType, type QuestionType } from './types-and-modes.ts';

export { MODES, type Mode, QUESTION_TYPES, type QuestionType } from './types-and-modes.ts';

/**
 * A typed question as the engine gets it; ids and thresholds stay with the caller. Code that depends on the
 * type asks the type's definition, or is an exhaustive `switch` or a table by `QuestionType`. So the compiler
 * names each place that a new type changes, and `CONTRIBUTING.md` the texts.
 */
export type Question = NoulQuestion | ChoiceQuestion | ScoreQuestion;

/** The definitions of the types, in the order of the documentation. */
const DEFINITIONS = { noul: NOUL, choice: CHOICE, score: SCORE } satisfies Record<QuestionType, unknown>;

/** A question in a request's body. */
export const QuestionSchema = Type.Union(
  Object.values(DEFINITIONS).map(({ question_schema }) => question_schema),
  { title: 'Question' },
);

/** The answer to a question in a response. */
export const AnswerSchema = Type.Union(
  Object.values(DEFINITIONS).map(({ answer_schema }) => answer_schema),
  { title: 'Answer' },
);
export type Answer = Static<typeof AnswerSchema>;
export type WrittenAnswer = Written<Answer>;

/** Returns the type of a question in a request's body; null for anything else (`invalid_question_type`). */
export function questionTypeOf(body: JsonValue | undefined): QuestionType | null {
  const type = isJsonObject(body) ? body.get('type') : undefined;
  return isQuestionType(type) ? type : null;
}

/** Returns the names of the question's fields that are read; all of them where its type is unknown. */
export function questionFields(body: JsonObject<JsonValue>): readonly string[] {
  const type = questionTypeOf(body);
  return type === null ? body.names : Object.keys(DEFINITIONS[type].question_schema.properties);
}

/**
 * Returns the names of the question's criteria that are read; null where they are the client's own, or the type is
 * unknown.
 */
export function criteriaFields(
  body: JsonObject<JsonValue>,
  criteria: JsonObject<JsonValue>,
): readonly string[] | null {
  const type = questionTypeOf(body);
  return type === null ? null : DEFINITIONS[type].criteriaFields(criteria);
}

/**
 * Parses a question of a request's body. Returns `InvalidCriteria` when they do not fit its type, and null
 * for an unknown type.
 */
export function parseQuestion(
  body: JsonValue | undefined,
): ParsedQuestion<Question> | InvalidCriteria | null {
  const type = questionTypeOf(body);
  return type === null || !isJsonObject(body) ? null : DEFINITIONS[type].parse(body);
}

/** Returns all that depends on the type of the question. */
export function traitsOf(question: Question): QuestionTraits<Question, WrittenAnswer> {
  switch (question.type) {
    case 'noul':
      return NOUL.traitsOf(question);
    case 'choice':
      return CHOICE.traitsOf(question);
    case 'score':
      return SCORE.traitsOf(question);
  }
}

/** Returns the question in the form of a request's body, as its traits do. */
export function questionBody(question: Question): WritableJson {
  return traitsOf(question).body();
}

/** Returns the number of the engine's scores, as the question's traits do. */
export function scoreCount(question: Question): number {
  return traitsOf(question).score_count;
}

/** Returns the names of the possible answers, as the question's traits do. */
export function classesOf(question: Question): readonly string[] {
  return traitsOf(question).classes;
}

/** Returns the probability of every class before it becomes an answer, as the question's traits do. */
export function classProbabilities(question: Question, scores: readonly number[]): readonly number[] {
  return traitsOf(question).probabilities(scores);
}

/**
 * Returns the answer to one question from the engine's calibrated scores. Throws `RangeError` for a wrong
 * number of scores (`scoreCount`), or for NaN.
 */
export function answerFrom(
  { question, threshold }: { readonly question: Question; readonly threshold: number | null },
  scores: readonly number[],
): WrittenAnswer {
  const { score_count, probabilities, answer } = traitsOf(question);
  if (scores.length !== score_count)
    throw new RangeError(`the model gave ${scores.length} scores and not ${score_count}`);
  return answer(probabilities(scores), threshold);
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
  const traits = traitsOf(question);
  if (numbers.length !== traits.score_count)
    throw new RangeError(`the kept answer has ${numbers.length} numbers and not ${traits.score_count}`);
  return traits.answerOfNumbers(numbers, threshold);
}
