import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { requirePermission } from '../../access/permissions.ts';
import { TypeTemperatures } from '../../questions/temperatures.ts';
import { answerOf, listOf, Micros, nullable, OrganizationParams, only } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

const LiveModel = answerOf({
  id: Type.String(),
  context_tokens: Type.Integer({
    description: 'How much a request may be; a longer record loses its middle.',
  }),
  input_price_micros_per_million_tokens: Micros,
});

const TuningBase = answerOf({
  /** The weights and the profile that a tuning is bound to. */
  weights_sha256: Type.String(),
  profile: Type.String(),
  temperatures: nullable(answerOf({ fast: TypeTemperatures, consistent: TypeTemperatures })),
});

/**
 * Returns the routes of the open decision models that an organization may ask. One is the list by id, the other the facts by
 * which a model can be tuned. These are null for a model without weights of its own, and while it is not loaded.
 */
export function liveModelRoutes(services: ConsoleServices) {
  const { catalog } = services.decisions;
  return new Elysia({ prefix: '/organizations/:organization_id/models' })
    .use(signedIn(services))
    .get(
      '/',
      async ({ actor, params }) => {
        const { organization_id } = params;
        await requirePermission(services.store, actor, organization_id, 'see');
        const models = await catalog.listDecisionModelsOf(organization_id);
        return { items: models.map((model) => only(LiveModel, model)) };
      },
      { params: OrganizationParams, response: answerOf({ items: listOf(LiveModel) }) },
    )
    .get(
      '/tuning-base',
      async ({ actor, params, query }) => {
        const { organization_id } = params;
        await requirePermission(services.store, actor, organization_id, 'use_keys');
        const models = await catalog.listDecisionModelsOf(organization_id);
        const model = models.find(({ id }) => id === query.model);
        const is_own = model !== undefined && 'weights' in model;
        const facts = is_own
          ? services.operation.models.lifecycle(model.id)?.engineIfLoaded()?.facts
          : undefined;
        return { base: facts === undefined ? null : only(TuningBase, facts) };
      },
      {
        params: OrganizationParams,
        query: Type.Object({ model: Type.String({ minLength: 1, maxLength: 100 }) }),
        response: answerOf({ base: nullable(TuningBase) }),
      },
    );
}
