import { type Static, Type } from '@sinclair/typebox';
import type { Actor } from '../../access/actor.ts';
import { requirePermission } from '../../access/permissions.ts';
import type { OrganizationUsageFilter } from '../../usage/analytics.ts';
import { Id, ModeSchema, type OrganizationParams, only, queryInteger, queryTime } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { requireKeyOf, requireProjectOf } from './within-organization.ts';

const Text = Type.String({ minLength: 1, maxLength: 200 });

/** The filter of requests; a missing field does not filter. */
export const FilterQuery = Type.Object({
  from_ms: Type.Optional(queryTime()),
  to_ms: Type.Optional(queryTime()),
  project_id: Type.Optional(Id),
  api_key_id: Type.Optional(Id),
  model: Type.Optional(Text),
  mode: Type.Optional(ModeSchema),
  endpoint: Type.Optional(Text),
  status: Type.Optional(queryInteger({ minimum: 100, maximum: 599 })),
  request_id: Type.Optional(Id),
});

/**
 * Returns the filter of a path and its query, whose project and key must belong to the organization. An
 * actor who may not see the organization learns about neither.
 */
export async function filterOf(
  { store }: Pick<ConsoleServices, 'store'>,
  actor: Actor,
  { organization_id }: Static<typeof OrganizationParams>,
  query: Static<typeof FilterQuery>,
): Promise<OrganizationUsageFilter> {
  const { project_id, api_key_id } = query;
  await requirePermission(store, actor, organization_id, 'see');
  if (project_id !== undefined) {
    await requireProjectOf(store, actor, { organization_id, project_id }, 'see');
  }
  if (api_key_id !== undefined) {
    await requireKeyOf(store, actor, { organization_id, key_id: api_key_id }, 'see');
  }
  return { ...only(FilterQuery, query), organization_id };
}
