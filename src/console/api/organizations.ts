import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { createOrganization, renameOrganization } from '../../accounts/organizations.ts';
import { answerOf, Done, Name, OrganizationParams } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

/** Returns the routes that create and rename organizations. The list of them comes with the session. */
export function organizationRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations' })
    .use(signedIn(services))
    .post(
      '/',
      async ({ actor, body: { name } }) => {
        const { id } = await createOrganization(services, actor, { name });
        return { id };
      },
      { body: Type.Object({ name: Name }), response: answerOf({ id: Type.String() }) },
    )
    .patch(
      '/:organization_id',
      async ({ actor, params: { organization_id }, body: { name } }) => {
        await renameOrganization(services, actor, { organization_id, name });
        return { done: true as const };
      },
      { params: OrganizationParams, body: Type.Object({ name: Name }), response: Done },
    );
}
