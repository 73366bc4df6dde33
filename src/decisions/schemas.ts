import { type Static, Type } from '@sinclair/typebox';
import { IDEMPOTENCY_KEY_LENGTH_MAX } from '../idempotency/claim.ts';
import type { Written } from '../json/written.ts';
import { AnswerSchema, MODES, QuestionSchema } from '../questions/question.ts';
import { AnyKey } from '../questions/question-fields.ts';

/**
 * The request and response of a decision: the single source of the types in the code and of the OpenAPI
 * document. `request.ts` checks requests, because a schema cannot express the order of codes. A test holds
 * that both take the same requests.
 */

export const ModeSchema = Type.Union(
  MODES.map((mode) => Type.Literal(mode)),
  {
    title: 'Mode',
    description:
      'fast reads the record once and every question reuses it; consistent reads it again with each question.',
  },
);

/** There is no maximum, because an organization's own limit can be above every tier's. */
const questions = Type.Record(AnyKey, QuestionSchema, {
  minProperties: 1,
  description:
    'Question id, chosen by the client, to question. Up to 32 on Tier 1, up to 64 from Tier 2, or what is set for the organization.',
});

const state = Type.Union([Type.String(), Type.Record(AnyKey, Type.Unknown()), Type.Array(Type.Unknown())], {
  description:
    'The record. Objects and arrays are rendered compactly as text. A list of text and json parts is read as their contents.',
});

/** The record of a request, as it is read. */
export type DecisionRecord = Written<Static<typeof state>>;

/** The value of the header; without it each request is a new one. */
export const IdempotencyKeySchema = Type.String({ minLength: 1, maxLength: IDEMPOTENCY_KEY_LENGTH_MAX });

const ModelId = Type.String({ minLength: 1, description: 'A decision model, such as decision-1.' });

/** Null is the same as absent, for clients that send every field. */
const mode = Type.Optional(
  Type.Union([ModeSchema, Type.Null()], {
    description:
      'Absent or null: the `mode` of the query, and fast where that has none. A mode here wins over the query.',
  }),
);

/** The body of `POST /v1/decisions`. Unknown fields are ignored. */
export const DecisionRequestSchema = Type.Object({
  model: ModelId,
  state,
  questions,
  mode,
});

/** The body of `POST /v1/systemone`: the same, but the model is optional. */
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
  latency_ms: Type.Number({ minimum: 0, description: 'Model time, without the wait for the model.' }),
});

export type DecisionResponse = Static<typeof DecisionResponseSchema>;
export type WrittenDecision = Written<DecisionResponse>;

/** The tokens and the cost of a request. An addition to the specification. */
export const TokenCountSchema = Type.Object({
  object: Type.Literal('token_count'),
  model: Type.String({ description: 'The model that would answer.' }),
  mode: ModeSchema,
  input_tokens: Type.Integer({ minimum: 0, description: 'What would be billed.' }),
  read_tokens: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description:
      'What the model would read in all, with the second readings of consistent mode, which are free. A second reading of the likeliest of more than 32 options is not counted. Null where that is up to an upstream.',
  }),
  cost_usd: Type.Number({ minimum: 0 }),
  exact: Type.Boolean({
    description: 'False where an upstream counts by itself: then the numbers are the most that it can be.',
  }),
  record_tokens_left_out: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description:
      'How much of the record the question with the least room would not see. Estimated for records of several times the context; null where that is up to an upstream.',
  }),
});

export type TokenCount = Static<typeof TokenCountSchema>;
