import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { changeRole, listMembers, removeMember } from '../../accounts/members.ts';
import {
  answerOf,
  Done,
  done,
  Id,
  listOf,
  nullable,
  OrganizationParams,
  RoleSchema,
  Time,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

/** The fields of a member that an operator sees too. */
export const MemberFields = {
  user_id: Type.String(),
  email: Type.String(),
  name: Type.String(),
  role: RoleSchema,
  created_at_ms: Time,
};

const Member = answerOf({
  ...MemberFields,
  has_second_factor: nullable(Type.Boolean()),
});

const MemberParams = Type.Object({ organization_id: Id, user_id: Id });

/** Returns the routes of an organization's members: list, change a role, remove, leave. */
export function memberRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/members' })
    .use(signedIn(services))
    .get(
      '/',
      async ({ actor, params: { organization_id } }) => ({
        items: await listMembers(services, actor, organization_id),
      }),
      { params: OrganizationParams, response: answerOf({ items: listOf(Member) }) },
    )
    .patch(
      '/:user_id',
      ({ actor, params, body: { role } }) => done(changeRole(services, actor, { ...params, role })),
      { params: MemberParams, body: Type.Object({ role: RoleSchema }), response: Done },
    )
    .delete('/:user_id', ({ actor, params }) => done(removeMember(services, actor, params)), {
      params: MemberParams,
      response: Done,
    });
}
