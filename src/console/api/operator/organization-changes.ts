import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { invite } from '../../../accounts/invitations.ts';
import { setSuspended, setTierSettings } from '../../../accounts/organizations.ts';
import { answerOf, Done, done, Email, nullable, OrganizationParams, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

/** An operator's limit: absent leaves it unchanged, null restores the tier's value. The rule bounds it. */
const Limit = Type.Optional(nullable(Type.Integer()));

/** Returns the routes that change an organization's limits, invite its first owner, and suspend it. */
export function organizationChangeRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(operatorOnly(services))
    .patch(
      '/:organization_id/limits',
      ({ operator, params: { organization_id }, body }) =>
        done(setTierSettings(services, operator, organization_id, body)),
      {
        params: OrganizationParams,
        body: Type.Object(
          {
            minimum_tier: Limit,
            requests_per_minute: Limit,
            tokens_per_minute: Limit,
            questions_per_request: Limit,
            top_up_max_micros: Limit,
          },
          { additionalProperties: false },
        ),
        response: Done,
      },
    )
    .post(
      '/:organization_id/owner',
      async ({ operator, session, params: { organization_id }, body: { email } }) => {
        services.sign_in.countInvitation(session, email);
        const invitation = await invite(services, operator, { organization_id, email, role: 'owner' });
        services.mailInvitation(invitation, session.name);
        return { id: invitation.id };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ email: Email }),
        response: answerOf({ id: Type.String({ description: 'Of the invitation that was mailed.' }) }),
      },
    )
    .post(
      '/:organization_id/suspension',
      async ({ operator, params: { organization_id }, body: { is_suspended } }) => {
        const given = { organization_id, is_suspended };
        const { suspended_at_ms } = await setSuspended(services, operator, given);
        return { suspended_at_ms };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ is_suspended: Type.Boolean() }),
        response: answerOf({ suspended_at_ms: nullable(Time) }),
      },
    );
}
