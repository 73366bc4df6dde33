import { type Static, Type } from '@sinclair/typebox';

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

/** One live model (contract: model object). */
const ModelSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  owned_by: Type.String(),
  kind: Type.String(),
  status: Type.String(),
});

/** Body of `GET /v1/models`. `models` repeats the list in the form that clients of `/v1/systemone` elsewhere read. */
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
