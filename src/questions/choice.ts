import { type Static, Type } from '@sinclair/typebox';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import type { WritableJson } from '../json/write-json.ts';
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

/** A question with several options, of which exactly one is right, in the client's order. */
export interface ChoiceQuestion {
  readonly type: AskedChoice['type'];
  readonly instructions: AskedChoice['instructions'];
  readonly options: readonly { readonly id: string; readonly description: JsonValue }[];
}

export const ChoiceQuestionSchema = Type.Object(
  {
    type: Type.Literal('choice'),
    instructions: Instructions,
    criteria: Type.Record(AnyKey, Description, {
      minProperties: OPTIONS_MIN,
      maxProperties: OPTIONS_MAX,
      description: 'Option id to short description.',
    }),
  },
  { title: 'ChoiceQuestion', description: 'Exactly one of several options.' },
);

type AskedChoice = Written<Static<typeof ChoiceQuestionSchema>>;

export const ChoiceAnswerSchema = Type.Object(
  {
    type: Type.Literal('choice'),
    choice: Type.String({ description: 'The most likely option.' }),
    probabilities: Type.Record(AnyKey, Probability),
    confidence: Type.Number({ minimum: 0, maximum: 1, description: '(max_p - 1/n) / (1 - 1/n)' }),
  },
  { title: 'ChoiceAnswer' },
);
type WrittenChoiceAnswer = Written<Static<typeof ChoiceAnswerSchema>>;

/**
 * Parses the question of a request's body. Returns `InvalidCriteria` when its criteria are not an object of 2
 * to 255 options.
 */
function parse(body: JsonObject<JsonValue>): ParsedQuestion<ChoiceQuestion> | InvalidCriteria {
  const criteria = body.get('criteria');
  if (!isJsonObject(criteria) || !isOptionCount(criteria.names.length)) {
    return new InvalidCriteria(
      `A choice needs an object of ${OPTIONS_MIN} to ${OPTIONS_MAX} options as criteria; ${describeCriteria(criteria)}.`,
    );
  }
  const options = criteria.entries().map(([id, description]) => ({ id, description }));
  return {
    question: { type: 'choice', instructions: body.get('instructions'), options },
    threshold: null,
    rejection: null,
  };
}

/**
 * Returns the answer; `probabilities` belong to `ids` by position and sum to 1. Throws `RangeError` for NaN,
 * and where there is no option.
 */
export function choiceAnswer(ids: readonly string[], probabilities: readonly number[]): WrittenChoiceAnswer {
  return answerOf(ids, roundToSumOne(probabilities));
}

/** Returns the answer with exactly these probabilities. Throws `RangeError` where there is no option. */
function answerOf(ids: readonly string[], rounded: readonly number[]): WrittenChoiceAnswer {
  const { index, value } = largest(rounded);
  const even = 1 / ids.length;
  const choice = ids[index];
  if (choice === undefined) throw new RangeError('a choice needs a probability for every option');
  return {
    type: 'choice',
    choice,
    probabilities: new JsonObject(ids, rounded),
    confidence: roundToParts(Math.min(1, Math.max(0, (value - even) / (1 - even)))),
  };
}

function traitsOf(question: ChoiceQuestion): QuestionTraits<ChoiceQuestion, WrittenChoiceAnswer> {
  const { type, instructions, options } = question;
  const ids = options.map(({ id }) => id);
  return {
    ...ONE_SCORE_FOR_EACH_CLASS,
    classes: ids,
    score_count: ids.length,
    body: () => {
      const descriptions = options.map(({ description }) => description);
      return { type, instructions, criteria: new JsonObject<WritableJson>(ids, descriptions) };
    },
    backward: () => ({ ...question, options: options.toReversed() }),
    identity: () => {
      const sorted = options
        .map((option, place) => ({ ...option, place }))
        .sort((one, other) => (one.id < other.id ? -1 : 1));
      return {
        places: sorted.map(({ place }) => place),
        criteria: [sorted.map(({ id, description }) => [id, description])],
      };
    },
    classIndex: (answer) => options.findIndex(({ id }) => id === answer),
    answer: (probabilities) => choiceAnswer(ids, probabilities),
    answerOfNumbers: (numbers) => answerOf(ids, numbers),
  };
}

export const CHOICE = {
  question_schema: ChoiceQuestionSchema,
  answer_schema: ChoiceAnswerSchema,
  parse,
  criteriaFields: () => null,
  traitsOf,
} satisfies TypeDefinition<ChoiceQuestion, WrittenChoiceAnswer>;
