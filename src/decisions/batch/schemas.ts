import { type Static, Type } from '@sinclair/typebox';
import { DecisionResponseSchema, SystemOneRequestSchema } from '../schemas.ts';

/** The lines of a batch and of its answer: the single source of the types in the code and of the OpenAPI document. */

/** A number beyond 2^53 could not be given back as it was sent. */
export const LineIdSchema = Type.Union([
  Type.String({ maxLength: 255 }),
  Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
  Type.Null(),
]);

export type LineId = Static<typeof LineIdSchema>;

const { state, questions, mode, model } = SystemOneRequestSchema.properties;

/** A record. Null is the same as absent. */
export const RecordLineSchema = Type.Object(
  {
    id: Type.Optional(LineIdSchema),
    state,
    questions: Type.Optional(Type.Union([questions, Type.Null()])),
    mode,
    model,
  },
  {
    description:
      'A record. Questions, mode and model that it has not are those of the first line. Without any model it is decision-1.',
  },
);

const HeaderLineSchema = Type.Object(
  { questions: Type.Optional(questions), mode, model },
  {
    minProperties: 1,
    description:
      'As the first line only: questions, mode and model for the lines that follow. It has no answer.',
  },
);

/** A line of the body of `POST /v1/decisions/batch`. Unknown fields are ignored. */
export const BatchLineSchema = Type.Union([RecordLineSchema, HeaderLineSchema]);

/** The fields of every line of the response. */
export const AnsweredLineFields = {
  id: LineIdSchema,
  line: Type.Integer({ minimum: 1, description: 'Which line of the request it is.' }),
  request_id: Type.String({ pattern: '^req_' }),
};

const { id: decision_id, ...decision } = DecisionResponseSchema.properties;

/** A line of the response that has an answer: that of `POST /v1/decisions`, under the id of the line. */
export const AnsweredLineSchema = Type.Object({
  ...AnsweredLineFields,
  decision_id,
  ...decision,
  replayed: Type.Optional(
    Type.Literal(true, {
      description:
        'The answer is that of an earlier line with the same Idempotency-Key, and was paid for then.',
    }),
  ),
  ignored_fields: Type.Optional(
    Type.Array(Type.String(), { description: 'Fields of the line and its questions that nothing read.' }),
  ),
  record_tokens_left_out: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Tokens in the middle of the record that a question did not see.',
    }),
  ),
});
