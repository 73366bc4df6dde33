import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { requirePermission } from '../../access/permissions.ts';
import { answerOf, Micros, OrganizationParams } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

const LiveModel = answerOf({
  id: Type.String(),
  context_tokens: Type.Integer({
    description: 'How much a request may be; a longer record loses its middle.',
  }),
  input_price_micros_per_million_tokens: Micros,
});

/** Returns the route of the open decision models that an organization may ask, by id, its own ones too. */
export function liveModelRoutes(services: ConsoleServices) {
  const { catalog } = services.decisions;
  return new Elysia({ prefix: '/organizations/:organization_id/models' }).use(signedIn(services)).get(
    '/',
    async ({ actor, params }) => {
      const { organization_id } = params;
      await requirePermission(services.store, actor, organization_id, 'see');
      const models = await catalog.listDecisionModelsOf(organization_id);
      return {
        items: models.map(({ id, context_tokens, input_price_micros_per_million_tokens }) => ({
          id,
          context_tokens,
          input_price_micros_per_million_tokens,
        })),
      };
    },
    { params: OrganizationParams, response: answerOf({ items: Type.Array(LiveModel) }) },
  );
}
