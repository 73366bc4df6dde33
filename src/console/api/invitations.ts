import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { requirePermission } from '../../access/permissions.ts';
import {
  acceptInvitation,
  invite,
  listInvitations,
  readInvitation,
  resendInvitation,
  revokeInvitation,
} from '../../accounts/invitations.ts';
import type { RequestContexts } from '../../http/context.ts';
import { giveCookies } from './cookies.ts';
import {
  answerOf,
  Done,
  done,
  Email,
  Id,
  listOf,
  Name,
  nullable,
  OrganizationParams,
  only,
  Password,
  RoleSchema,
  Time,
  Token,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { visitOf } from './visit.ts';

const Invitation = answerOf({
  id: Type.String(),
  email: Type.String(),
  role: RoleSchema,
  invited_by_name: nullable(Type.String()),
  created_at_ms: Time,
  expires_at_ms: Time,
});

const InvitationParams = Type.Object({ organization_id: Id, invitation_id: Id });

/** Returns the routes of an organization's invitations: list the open ones, invite, send again, revoke. */
export function invitationRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/invitations' })
    .use(signedIn(services))
    .get(
      '/',
      async ({ actor, params: { organization_id } }) => {
        const invitations = await listInvitations(services, actor, organization_id);
        return { items: invitations.map((invitation) => only(Invitation, invitation)) };
      },
      { params: OrganizationParams, response: answerOf({ items: listOf(Invitation) }) },
    )
    .post(
      '/',
      async ({ actor, session, params: { organization_id }, body: { email, role } }) => {
        await requirePermission(services.store, actor, organization_id, 'manage_members');
        services.sign_in.countInvitation(session, email);
        const invitation = await invite(services, actor, { organization_id, email, role });
        services.mailInvitation(invitation, session.name);
        return { id: invitation.id };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ email: Email, role: RoleSchema }),
        response: answerOf({ id: Type.String() }),
      },
    )
    .post(
      '/:invitation_id/resend',
      async ({ actor, session, params }) => {
        const open = await listInvitations(services, actor, params.organization_id);
        const email = open.find(({ id }) => id === params.invitation_id)?.email;
        if (email !== undefined) services.sign_in.countInvitation(session, email);
        services.mailInvitation(await resendInvitation(services, actor, params), session.name);
        return { done: true } as const;
      },
      { params: InvitationParams, response: Done },
    )
    .delete('/:invitation_id', ({ actor, params }) => done(revokeInvitation(services, actor, params)), {
      params: InvitationParams,
      response: Done,
    });
}

const Joined = answerOf({ organization_id: Type.String() });

/**
 * Returns the routes of an invitation's link. Reading it, and making the account of its address, need only the link;
 * accepting it with an account needs the invited user's session.
 */
export function offeredInvitationRoutes(services: ConsoleServices, contexts: RequestContexts) {
  return new Elysia({ prefix: '/invitation' })
    .post(
      '/read',
      async ({ body: { token } }) => {
        const offered = await readInvitation(services, token);
        return { ...offered, has_account: await services.sign_in.hasAccount(offered.email) };
      },
      {
        body: Type.Object({ token: Token }),
        response: answerOf({
          organization_id: Type.String(),
          organization_name: Type.String(),
          email: Type.String(),
          role: RoleSchema,
          expires_at_ms: Time,
          has_account: Type.Boolean(),
        }),
      },
    )
    .post(
      '/sign-up',
      async ({ request, set, body: { token, name, password } }) => {
        await readInvitation(services, token);
        const given = { name, password, invitation_token: token };
        const { user_id, ...cookies } = await services.sign_in.signUpInvited(
          visitOf(contexts, request),
          given,
        );
        giveCookies(set, cookies);
        const { organization_id } = await acceptInvitation(services, { kind: 'user', user_id }, token);
        return { organization_id };
      },
      { body: Type.Object({ token: Token, name: Name, password: Password }), response: Joined },
    )
    .use(signedIn(services))
    .post(
      '/accept',
      async ({ actor, body: { token } }) => {
        const { organization_id } = await acceptInvitation(services, actor, token);
        return { organization_id };
      },
      { body: Type.Object({ token: Token }), response: Joined },
    );
}
