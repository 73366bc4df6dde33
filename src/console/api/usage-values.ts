import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { listKeys, listRevokedKeys } from '../../accounts/keys.ts';
import { listProjects } from '../../accounts/projects.ts';
import { usageValues } from '../../usage/analytics.ts';
import { answerOf, listOf, ModeSchema, OrganizationParams } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { FilterQuery } from './usage-filter.ts';

/** The most revoked keys in the filter, last revoked first, because their number has no bound. */
const REVOKED_KEYS_MAX = 200;

/** Returns the route of the values to filter usage by. */
export function usageValueRoutes(services: ConsoleServices) {
  return new Elysia().use(signedIn(services)).get(
    '/values',
    async ({ actor, params: { organization_id }, query: { from_ms, to_ms } }) => {
      const [values, projects, archived_projects, keys, revoked_keys] = await Promise.all([
        usageValues(services, actor, { organization_id, from_ms, to_ms }),
        listProjects(services, actor, { organization_id }),
        listProjects(services, actor, { organization_id, archived: true }),
        listKeys(services, actor, { organization_id }),
        listRevokedKeys(services, actor, { organization_id, cursor: null, limit: REVOKED_KEYS_MAX }),
      ]);
      return {
        projects: [...projects, ...archived_projects].map(({ id, name, archived_at_ms }) => ({
          id,
          name,
          is_archived: archived_at_ms !== null,
        })),
        api_keys: [...keys, ...revoked_keys.items].map(
          ({ id, name, display_prefix, project_id, revoked_at_ms }) => ({
            id,
            name,
            display_prefix,
            project_id,
            is_revoked: revoked_at_ms !== null,
          }),
        ),
        ...values,
      };
    },
    {
      params: OrganizationParams,
      query: Type.Pick(FilterQuery, ['from_ms', 'to_ms']),
      response: answerOf({
        projects: listOf(answerOf({ id: Type.String(), name: Type.String(), is_archived: Type.Boolean() })),
        api_keys: listOf(
          answerOf({
            id: Type.String(),
            name: Type.String(),
            display_prefix: Type.String(),
            project_id: Type.String(),
            is_revoked: Type.Boolean(),
          }),
        ),
        models: listOf(Type.String()),
        modes: listOf(ModeSchema),
        endpoints: listOf(Type.String()),
        statuses: listOf(Type.Integer()),
      }),
    },
  );
}
