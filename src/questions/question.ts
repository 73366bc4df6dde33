import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import type { WritableJson } from '../json/write-json.ts';
import type { Written } from '../json/written.ts';
import {
  ChoiceAnswerSchema,
  type ChoiceQuestion,
  ChoiceQuestionSchema,
  choiceAnswer,
  choiceAnswerOf,
  parseChoice,
} from './choice.ts';
import {
  NoulAnswerSchema,
  type NoulQuestion,
  NoulQuestionSchema,
  noulAnswer,
  noulAnswerOf,
  noulProbabilities,
  parseNoul,
} from './noul.ts';
import { softmax } from './probabilities.ts';
import type { InvalidCriteria, ParsedQuestion } from './question-fields.ts';
import {
  levelNames,
  parseScore,
  ScoreAnswerSchema,
  type ScoreQuestion,
  ScoreQuestionSchema,
  scoreAnswer,
  scoreAnswerOf,
} from './score.ts';
import { isQuestionType, type QuestionType } from './types-and-modes.ts';

export { MODES, type Mode, QUESTION_TYPES, type QuestionType } from './types-and-modes.ts';

/**
 * A typed question as the engine gets it; ids and thresholds stay with the caller. Code that depends on the
 * type is an exhaustive `switch` or a table by `QuestionType`, so that the compiler finds it for a new member.
 * `CONTRIBUTING.md` names what is only text.
 */
export type Question = NoulQuestion | ChoiceQuestion | ScoreQuestion;

/** The questions by type. */
const QUESTION_SCHEMAS = {
  noul: NoulQuestionSchema,
  choice: ChoiceQuestionSchema,
  score: ScoreQuestionSchema,
} satisfies Record<QuestionType, TSchema>;

/** A question in a request's body. */
export const QuestionSchema = Type.Union(Object.values(QUESTION_SCHEMAS), { title: 'Question' });

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

/** Returns the type of a question in a request's body; null for anything else (`invalid_question_type`). */
export function questionTypeOf(body: JsonValue | undefined): QuestionType | null {
  const type = isJsonObject(body) ? body.get('type') : undefined;
  return isQuestionType(type) ? type : null;
}

/** Returns the names of the question's fields that are read; all of them where its type is unknown. */
export function questionFields(body: JsonObject<JsonValue>): readonly string[] {
  const type = questionTypeOf(body);
  return type === null ? body.names : Object.keys(QUESTION_SCHEMAS[type].properties);
}

/**
 * Parses a question of a request's body. Returns `InvalidCriteria` when they do not fit its type, and null
 * for an unknown type.
 */
export function parseQuestion(
  body: JsonValue | undefined,
): ParsedQuestion<Question> | InvalidCriteria | null {
  if (!isJsonObject(body)) return null;
  switch (questionTypeOf(body)) {
    case 'noul':
      return parseNoul(body);
    case 'choice':
      return parseChoice(body);
    case 'score':
      return parseScore(body);
    case null:
      return null;
  }
}

/**
 * Returns the question in the form of a request's body, from which `parseQuestion` reads the same question.
 */
export function questionBody(question: Question): WritableJson {
  const { type, instructions } = question;
  switch (question.type) {
    case 'noul': {
      const { yes, no } = question;
      const is_described = yes !== undefined || no !== undefined;
      return { type, instructions, criteria: is_described ? { true: yes, false: no } : undefined };
    }
    case 'choice': {
      const { options } = question;
      const criteria = new JsonObject<WritableJson>(
        options.map(({ id }) => id),
        options.map(({ description }) => description),
      );
      return { type, instructions, criteria };
    }
    case 'score':
      return { type, instructions, criteria: question.levels };
  }
}

/**
 * Returns the number of the engine's scores: the log-odds of yes for a noul, otherwise one for each option or
 * level.
 */
export function scoreCount(question: Question): number {
  switch (question.type) {
    case 'noul':
      return 1;
    case 'choice':
      return question.options.length;
    case 'score':
      return question.levels.length;
  }
}

/** Returns the names of the possible answers: no and yes, the options' ids, or the levels' indexes. */
export function classesOf(question: Question): readonly string[] {
  switch (question.type) {
    case 'noul':
      return ['no', 'yes'];
    case 'choice':
      return question.options.map(({ id }) => id);
    case 'score':
      return levelNames(question.levels);
  }
}

/**
 * Returns the probability of every class from a question's scores, before they become an answer; NaN for
 * missing scores.
 */
export function classProbabilities(question: Question, scores: readonly number[]): readonly number[] {
  switch (question.type) {
    case 'noul':
      return noulProbabilities(scores[0] ?? Number.NaN);
    case 'choice':
    case 'score':
      return softmax(scores);
  }
}

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
