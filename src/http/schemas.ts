import { type Static, Type } from '@sinclair/typebox';
import { ModeSchema } from '../decisions/schemas.ts';

/** The body of every error (contract: error object). */
export const ErrorResponseSchema = Type.Object({
  error: Type.Object({
    type: Type.String({ description: 'Category, fixed by the status code.' }),
    code: Type.String({ description: 'The exact cause; stable, to branch on.' }),
    message: Type.String({ description: 'For people; can change.' }),
    param: Type.Union([Type.String(), Type.Null()], { description: 'Path of the field at fault.' }),
  }),
  request_id: Type.String({ pattern: '^req_' }),
});

export type ErrorResponse = Static<typeof ErrorResponseSchema>;

/** A limit of the organization of the key. */
const OwnLimit = Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
  description: 'Of the organization; null where it has no access to the API.',
});

const Dollars = Type.Number({ minimum: 0 });

/** One live model (contract: model object). */
export const ModelSchema = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('model'),
    created: Type.Integer({
      minimum: 0,
      description: 'Unix seconds of its release. An addition to the specification.',
    }),
    owned_by: Type.String(),
    kind: Type.String(),
    status: Type.String(),
    context_tokens: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      description:
        'How many tokens a record and one question may have together; a longer record loses its middle. An addition to the specification, as everything below.',
    }),
    price: Type.Object(
      { input: Type.Union([Dollars, Type.Null()]), output: Type.Literal(0) },
      { description: 'US dollars for 1M tokens.' },
    ),
    modes: Type.Array(ModeSchema),
    limits: Type.Object({
      requests_per_minute: OwnLimit,
      tokens_per_minute: OwnLimit,
      questions_per_request: OwnLimit,
      options_per_question: Type.Integer({ minimum: 2 }),
      body_bytes: Type.Integer({ minimum: 1 }),
    }),
  },
  { title: 'Model' },
);

export type ListedModel = Static<typeof ModelSchema>;

/**
 * The body of `GET /v1/models`. `models` repeats the list in the form that other clients of `/v1/systemone`
 * read.
 */
export const ModelListSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(ModelSchema),
  models: Type.Array(
    Type.Object({
      name: Type.String(),
      description: Type.String(),
      release_date: Type.String({ description: 'YYYY-MM-DD' }),
    }),
    {
      description:
        'The same models in the form of the open decision-request format. An addition to the specification.',
    },
  ),
});

export type ModelList = Static<typeof ModelListSchema>;
