import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { listTrail } from '../../trail/list.ts';
import { answerOf, nullable, OrganizationParams, queryInteger, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

export const TrailPage = answerOf({
  items: Type.Array(
    answerOf({
      id: Type.Integer(),
      created_at_ms: Time,
      by: Type.Union([Type.Literal('user'), Type.Literal('operator')]),
      user_id: nullable(Type.String()),
      user_name: nullable(Type.String()),
      user_email: nullable(Type.String()),
      action: Type.String(),
      sentence: Type.String({ description: 'What was done, in words.' }),
      object_kind: Type.String(),
      object_id: nullable(Type.String()),
      object_name: nullable(Type.String()),
      detail: Type.Record(
        Type.String(),
        Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
      ),
    }),
  ),
  next: nullable(Type.Integer()),
});

/** The audit trail of an organization, newest first. */
export function trailRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/trail' }).use(signedIn(services)).get(
    '/',
    async ({ actor, params: { organization_id }, query: { before } }) => {
      const { items, next } = await listTrail(services, actor, { organization_id, cursor: before ?? null });
      return { items: [...items], next };
    },
    {
      params: OrganizationParams,
      query: Type.Object({ before: Type.Optional(queryInteger({ minimum: 1 })) }),
      response: TrailPage,
    },
  );
}
