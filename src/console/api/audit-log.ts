import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Actor } from '../../access/actor.ts';
import { isAuditLogAction } from '../../audit-log/actions.ts';
import { AUDIT_LOG_PAGE_MAX, listAuditLog } from '../../audit-log/list.ts';
import { refusedInput } from './refusals.ts';
import { answerOf, listOf, nullable, OrganizationParams, queryInteger, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

export const AuditLogPage = answerOf({
  items: listOf(
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

/** The query for a page of an audit log. */
export const AuditLogQuery = Type.Object({
  before: Type.Optional(queryInteger({ minimum: 1 })),
  action: Type.Optional(Type.String({ maxLength: 64 })),
  limit: Type.Optional(queryInteger({ minimum: 1, maximum: AUDIT_LOG_PAGE_MAX })),
});

/** Reads a page of an audit log. */
export async function readAuditLog(
  services: ConsoleServices,
  actor: Actor,
  organization_id: string | null,
  { before, action, limit = AUDIT_LOG_PAGE_MAX }: Static<typeof AuditLogQuery>,
): Promise<Static<typeof AuditLogPage>> {
  if (action !== undefined && !isAuditLogAction(action)) {
    throw refusedInput('action', 'The audit log knows no such action.');
  }
  return await listAuditLog(services, actor, {
    organization_id,
    cursor: before ?? null,
    action: action ?? null,
    limit,
  });
}

/** Returns the route of an organization's audit log, newest first. */
export function auditLogRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/trail' })
    .use(signedIn(services))
    .get(
      '/',
      ({ actor, params: { organization_id }, query }) =>
        readAuditLog(services, actor, organization_id, query),
      { params: OrganizationParams, query: AuditLogQuery, response: AuditLogPage },
    );
}
