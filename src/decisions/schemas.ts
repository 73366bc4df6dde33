import { type Static, Type } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../json/json-value.ts';

/**
 * Request and response of a decision (spec, "Resources and their fields"): the single source of the types in the code
 * and of the OpenAPI document. A request is checked by `request.ts`, whose order of codes a schema cannot express.
 */

export const OPTIONS_MIN = 2;
export const OPTIONS_MAX = 255;
export const QUESTIONS_MAX = 64;

/** Any text, also with line breaks, which the pattern that TypeBox takes by itself leaves out. */
const AnyKey = Type.String({ pattern: '^[\\s\\S]*$' });

const Probability = Type.Number({ minimum: 0, maximum: 1 });

/** A description may be any JSON value; a string is what clients normally send. */
const Description = Type.Unknown({ description: 'A short description; any JSON value, normally a string.' });

const Instructions = Type.Optional(
  Type.Unknown({
    description: 'The question, in plain English, answerable from the record alone. Normally a string.',
  }),
);

export const ModeSchema = Type.Union([Type.Literal('fast'), Type.Literal('consistent')], {
  description:
    'fast reads the record once and every question reuses it; consistent reads it again with each question.',
});

export const NoulQuestionSchema = Type.Object({
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
});

export const ChoiceQuestionSchema = Type.Object({
  type: Type.Literal('choice'),
  instructions: Instructions,
  criteria: Type.Record(AnyKey, Description, {
    minProperties: OPTIONS_MIN,
    maxProperties: OPTIONS_MAX,
    description: 'Option id to short description.',
  }),
});

export const ScoreQuestionSchema = Type.Object({
  type: Type.Literal('score'),
  instructions: Instructions,
  criteria: Type.Array(Description, {
    minItems: OPTIONS_MIN,
    maxItems: OPTIONS_MAX,
    description: 'Level descriptions, lowest first.',
  }),
});

export const QuestionSchema = Type.Union([NoulQuestionSchema, ChoiceQuestionSchema, ScoreQuestionSchema]);

const questions = Type.Record(AnyKey, QuestionSchema, {
  minProperties: 1,
  maxProperties: QUESTIONS_MAX,
  description: 'Question id, chosen by the client, to question. Up to 32 on Tier 1, up to 64 from Tier 2.',
});

const state = Type.Union([Type.String(), Type.Record(AnyKey, Type.Unknown()), Type.Array(Type.Unknown())], {
  description: 'The record. Objects and arrays are rendered compactly as text.',
});

const ModelId = Type.String({ minLength: 1, description: 'A decision model, such as decision-1.' });

/** Null is the same as none, for clients that send every field. */
const mode = Type.Optional(
  Type.Union([ModeSchema, Type.Null()], {
    description:
      'Absent or null: the `mode` of the query, and fast where that has none. A mode here wins over the query.',
  }),
);

/** Body of `POST /v1/decisions`. Unknown fields are ignored. */
export const DecisionRequestSchema = Type.Object({
  model: ModelId,
  state,
  questions,
  mode,
});

/** Body of `POST /v1/systemone`: the same, but the model may be left out. */
export const SystemOneRequestSchema = Type.Object({
  model: Type.Optional(
    Type.Union([ModelId, Type.Null()], {
      description:
        'Absent or null: decision-1. Any other value names an open model, or is 404 model_not_found.',
    }),
  ),
  state,
  questions,
  mode,
});

export const NoulAnswerSchema = Type.Object({
  type: Type.Literal('noul'),
  noul: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'Probability of yes; at most 0.199 or at least 0.801.',
  }),
  threshold: Type.Optional(Probability),
  decision: Type.Optional(Type.Boolean({ description: 'noul >= threshold' })),
});

export const ChoiceAnswerSchema = Type.Object({
  type: Type.Literal('choice'),
  choice: Type.String({ description: 'The most likely option.' }),
  probabilities: Type.Record(AnyKey, Probability),
  confidence: Type.Number({ minimum: 0, maximum: 1, description: '(max_p - 1/n) / (1 - 1/n)' }),
});

export const ScoreAnswerSchema = Type.Object({
  type: Type.Literal('score'),
  score: Type.Number({ minimum: 0, description: 'Expected level index: sum of index times probability.' }),
  probabilities: Type.Record(AnyKey, Probability),
  legend: Type.Record(
    AnyKey,
    Type.Unknown({ description: 'The level as it was sent; the empty string where it was null.' }),
  ),
  confidence: Probability,
});

export const AnswerSchema = Type.Union([NoulAnswerSchema, ChoiceAnswerSchema, ScoreAnswerSchema]);

export const DecisionResponseSchema = Type.Object({
  id: Type.String({ pattern: '^dec_' }),
  object: Type.Literal('decision'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String(),
  mode: ModeSchema,
  answers: Type.Record(AnyKey, AnswerSchema),
  usage: Type.Object({
    input_tokens: Type.Integer({ minimum: 0 }),
    output_tokens: Type.Literal(0, {
      description: 'Output is never billed. An addition to the specification.',
    }),
    decisions: Type.Integer({ minimum: 0 }),
    cost_usd: Type.Number({ minimum: 0, description: 'Exactly what was deducted.' }),
  }),
  latency_ms: Type.Number({ minimum: 0, description: 'Model time.' }),
});

/**
 * A type of the wire as it is made in the service: maps from a client's names as `JsonObject`, and any value as
 * `JsonValue`.
 */
type Written<Wire> = unknown extends Wire
  ? JsonValue
  : Wire extends object
    ? string extends keyof Wire
      ? JsonObject<Written<Wire[keyof Wire]>>
      : { readonly [Name in keyof Wire]: Written<Wire[Name]> }
    : Wire;

export type NoulAnswer = Static<typeof NoulAnswerSchema>;
export type ChoiceAnswer = Static<typeof ChoiceAnswerSchema>;
export type ScoreAnswer = Static<typeof ScoreAnswerSchema>;
export type Answer = Static<typeof AnswerSchema>;
export type DecisionResponse = Static<typeof DecisionResponseSchema>;
export type WrittenChoiceAnswer = Written<ChoiceAnswer>;
export type WrittenScoreAnswer = Written<ScoreAnswer>;
export type WrittenAnswer = Written<Answer>;
export type WrittenDecision = Written<DecisionResponse>;
