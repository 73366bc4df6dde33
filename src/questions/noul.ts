import { type Static, Type } from '@sinclair/typebox';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import type { Written } from '../json/written.ts';
import { checkProbability, roundToParts, sigmoid } from './probabilities.ts';
import { Description, Instructions, type ParsedQuestion, Probability } from './question-fields.ts';
import type { QuestionTraits, TypeDefinition } from './type-definition.ts';

/** A yes/no question. `yes` and `no` describe the two answers; undefined where the client did not. */
export interface NoulQuestion {
  readonly type: AskedNoul['type'];
  readonly instructions: AskedNoul['instructions'];
  readonly yes: NoulCriteria['yes'];
  readonly no: NoulCriteria['no'];
}

export const NoulQuestionSchema = Type.Object(
  {
    type: Type.Literal('noul'),
    instructions: Instructions,
    criteria: Type.Optional(
      Type.Union(
        [
          Type.Object({
            true: Type.Optional(Description),
            false: Type.Optional(Description),
            yes: Type.Optional(Description),
            no: Type.Optional(Description),
          }),
          Type.Null(),
        ],
        { description: 'What yes and no mean; the keys yes and no are accepted for true and false.' },
      ),
    ),
    threshold: Type.Optional(
      Type.Unknown({
        description: 'A number from 0 to 1; any other value is ignored. Adds `decision` to the answer.',
      }),
    ),
  },
  { title: 'NoulQuestion', description: 'A yes/no question.' },
);

type AskedNoul = Written<Static<typeof NoulQuestionSchema>>;
type NoulCriteria = NonNullable<AskedNoul['criteria']>;

export const NoulAnswerSchema = Type.Object(
  {
    type: Type.Literal('noul'),
    noul: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Probability of yes; at most 0.199 or at least 0.801.',
    }),
    threshold: Type.Optional(Probability),
    decision: Type.Optional(Type.Boolean({ description: 'noul >= threshold' })),
  },
  {
    title: 'NoulAnswer',
    description: '`threshold` and `decision` are there where the question had a valid threshold.',
  },
);
export type NoulAnswer = Static<typeof NoulAnswerSchema>;

/** No yes/no answer is between these two (contract: a noul is committed to one side). */
const COMMITTED_NO_MAX = 0.199;
const COMMITTED_YES_MIN = 0.801;

/** Parses the question of a request's body; the model rejects criteria of the wrong kind. */
function parse(body: JsonObject<JsonValue>): ParsedQuestion<NoulQuestion> {
  const criteria = body.get('criteria') ?? null;
  const described = isJsonObject(criteria) ? criteria : undefined;
  return {
    question: {
      type: 'noul',
      instructions: body.get('instructions'),
      yes: described?.get('true') ?? described?.get('yes'),
      no: described?.get('false') ?? described?.get('no'),
    },
    threshold: thresholdOf(body.get('threshold')),
    rejection:
      criteria === null || isJsonObject(criteria)
        ? null
        : 'The criteria of a noul question must be an object with descriptions of true and false.',
  };
}

/** Returns the names of a yes/no question's criteria that are read: `yes` and `no` only in place of `true` and `false`. */
function criteriaFields(criteria: JsonObject<JsonValue>): readonly string[] {
  const yes = (criteria.get('true') ?? null) === null ? ['yes'] : [];
  const no = (criteria.get('false') ?? null) === null ? ['no'] : [];
  return ['true', 'false', ...yes, ...no];
}

/** Returns the threshold, or null for anything outside 0 to 1 (contract: it is never an error). */
function thresholdOf(value: JsonValue | undefined): number | null {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : null;
}

/** The largest probability that is still a no. */
const BELOW_HALF = 0.5 - 1e-9;

/**
 * Returns the probability of yes for which `noulAnswer` gives this value: its inverse, to a millionth of the
 * answer.
 */
export function uncommittedProbability(noul: number): number {
  if (noul < 0.5) return Math.min(BELOW_HALF, (noul / COMMITTED_NO_MAX) * 0.5);
  return Math.max(0.5, 0.5 + ((noul - COMMITTED_YES_MIN) / (1 - COMMITTED_YES_MIN)) * 0.5);
}

/**
 * Returns a committed yes/no answer: a `probability` of yes below 0.5 maps linearly onto [0, 0.199], the rest
 * onto [0.801, 1]. Throws `RangeError` for NaN.
 */
export function noulAnswer(probability: number, threshold: number | null): NoulAnswer {
  checkProbability(probability);
  const committed =
    probability < 0.5
      ? (probability / 0.5) * COMMITTED_NO_MAX
      : COMMITTED_YES_MIN + ((probability - 0.5) / 0.5) * (1 - COMMITTED_YES_MIN);
  return answerOf(roundToParts(committed), threshold);
}

/** Returns the answer with exactly that probability of yes. */
function answerOf(noul: number, threshold: number | null): NoulAnswer {
  return threshold === null
    ? { type: 'noul', noul }
    : { type: 'noul', noul, threshold, decision: noul >= threshold };
}

function traitsOf({ type, instructions, yes, no }: NoulQuestion): QuestionTraits<NoulQuestion, NoulAnswer> {
  const is_described = yes !== undefined || no !== undefined;
  return {
    classes: ['no', 'yes'],
    score_count: 1,
    body: () => ({ type, instructions, criteria: is_described ? { true: yes, false: no } : undefined }),
    backward: () => null,
    identity: () => ({ places: [0, 1], criteria: [yes ?? null, no ?? null] }),
    classIndex: (answer) => (typeof answer === 'boolean' ? Number(answer) : -1),
    classScores: ([log_odds = Number.NaN]) => [0, log_odds],
    engineScores: ([of_no = Number.NaN, of_yes = Number.NaN]) => [of_yes - of_no],
    probabilities: ([log_odds = Number.NaN]) => {
      const of_yes = sigmoid(log_odds);
      return [1 - of_yes, of_yes];
    },
    answer: ([, of_yes = Number.NaN], threshold) => noulAnswer(of_yes, threshold),
    answerOfNumbers: ([noul = Number.NaN], threshold) => answerOf(noul, threshold),
  };
}

export const NOUL = {
  question_schema: NoulQuestionSchema,
  answer_schema: NoulAnswerSchema,
  parse,
  criteriaFields,
  traitsOf,
} satisfies TypeDefinition<NoulQuestion, NoulAnswer>;
