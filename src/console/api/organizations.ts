import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { createOrganization, renameOrganization } from '../../accounts/organizations.ts';
import { answerOf, Done, done, Name, OrganizationParams } from './schemas.ts';
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
      ({ actor, params, body: { name } }) => done(renameOrganization(services, actor, { ...params, name })),
      { params: OrganizationParams, body: Type.Object({ name: Name }), response: Done },
    );
}
