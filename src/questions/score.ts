import { type Static, Type } from '@sinclair/typebox';
import { isJsonArray, JsonObject, type JsonValue } from '../json/json-value.ts';
import type { Written } from '../json/written.ts';
import { largest, roundToParts, roundToSumOne } from './probabilities.ts';
import {
  AnyKey,
  Description,
  describeCriteria,
  Instructions,
  InvalidCriteria,
  isOptionCount,
  OPTIONS_MAX,
  OPTIONS_MIN,
  type ParsedQuestion,
  Probability,
} from './question-fields.ts';
import { ONE_SCORE_FOR_EACH_CLASS, type QuestionTraits, type TypeDefinition } from './type-definition.ts';

/** A question about a level on an ordered scale, lowest first. */
export interface ScoreQuestion {
  readonly type: AskedScore['type'];
  readonly instructions: AskedScore['instructions'];
  readonly levels: AskedScore['criteria'];
}

export const ScoreQuestionSchema = Type.Object(
  {
    type: Type.Literal('score'),
    instructions: Instructions,
    criteria: Type.Array(Description, {
      minItems: OPTIONS_MIN,
      maxItems: OPTIONS_MAX,
      description: 'Level descriptions, lowest first.',
    }),
  },
  { title: 'ScoreQuestion', description: 'A level on an ordered scale.' },
);

type AskedScore = Written<Static<typeof ScoreQuestionSchema>>;

export const ScoreAnswerSchema = Type.Object(
  {
    type: Type.Literal('score'),
    score: Type.Number({ minimum: 0, description: 'Expected level index: sum of index times probability.' }),
    probabilities: Type.Record(AnyKey, Probability),
    legend: Type.Record(
      AnyKey,
      Type.Unknown({ description: 'The level as it was sent; the empty string where it was null.' }),
    ),
    confidence: Type.Number({ minimum: 0, maximum: 1, description: 'Probability of the most likely level.' }),
  },
  { title: 'ScoreAnswer' },
);
type WrittenScoreAnswer = Written<Static<typeof ScoreAnswerSchema>>;

/**
 * Parses the question of a request's body. Returns `InvalidCriteria` when its criteria are not an array of 2
 * to 255 levels.
 */
function parse(body: JsonObject<JsonValue>): ParsedQuestion<ScoreQuestion> | InvalidCriteria {
  const criteria = body.get('criteria');
  if (!isJsonArray(criteria) || !isOptionCount(criteria.length)) {
    return new InvalidCriteria(
      `A score needs an array of ${OPTIONS_MIN} to ${OPTIONS_MAX} levels as criteria; ${describeCriteria(criteria)}.`,
    );
  }
  return {
    question: { type: 'score', instructions: body.get('instructions'), levels: criteria },
    threshold: null,
    rejection: null,
  };
}

/** Returns the names of the levels in answers: their indexes from 0. */
function levelNames(levels: readonly JsonValue[]): readonly string[] {
  return levels.map((_, level) => String(level));
}

/** Returns the mean of the level indexes by their probabilities. */
export function expectedLevel(probabilities: readonly number[]): number {
  return probabilities.reduce((sum, probability, level) => sum + level * probability, 0);
}

/**
 * Returns the answer; `score` is the weighted mean of the returned probabilities. Throws `RangeError` for
 * NaN.
 */
export function scoreAnswer(
  levels: readonly JsonValue[],
  probabilities: readonly number[],
): WrittenScoreAnswer {
  return answerOf(levels, roundToSumOne(probabilities));
}

/** Returns the answer with exactly these probabilities. */
function answerOf(levels: readonly JsonValue[], rounded: readonly number[]): WrittenScoreAnswer {
  const names = levelNames(levels);
  return {
    type: 'score',
    score: roundToParts(expectedLevel(rounded)),
    probabilities: new JsonObject(names, rounded),
    // A level is repeated as sent, whatever JSON it is. Null becomes '', which is what the model read.
    legend: new JsonObject(
      names,
      levels.map((level) => level ?? ''),
    ),
    confidence: largest(rounded).value,
  };
}

function traitsOf(question: ScoreQuestion): QuestionTraits<ScoreQuestion, WrittenScoreAnswer> {
  const { type, instructions, levels } = question;
  return {
    ...ONE_SCORE_FOR_EACH_CLASS,
    classes: levelNames(levels),
    score_count: levels.length,
    body: () => ({ type, instructions, criteria: levels }),
    backward: () => ({ ...question, levels: levels.toReversed() }),
    identity: () => ({ places: levels.map((_, level) => level), criteria: [levels] }),
    classIndex: (answer) => (typeof answer === 'number' && Number.isInteger(answer) ? answer : -1),
    answer: (probabilities) => scoreAnswer(levels, probabilities),
    answerOfNumbers: (numbers) => answerOf(levels, numbers),
  };
}

export const SCORE = {
  question_schema: ScoreQuestionSchema,
  answer_schema: ScoreAnswerSchema,
  parse,
  criteriaFields: () => null,
  traitsOf,
} satisfies TypeDefinition<ScoreQuestion, WrittenScoreAnswer>;
