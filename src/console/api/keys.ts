import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import {
  ACTIVE_KEYS_MAX,
  createKey,
  listKeys,
  listRevokedKeys,
  revokeKey,
  rotateKey,
  setKeyExpiry,
  setKeyLimit,
} from '../../accounts/keys.ts';
import type { ListedKey } from '../../store/key-records.ts';
import {
  answerOf,
  Done,
  done,
  Id,
  listOf,
  Micros,
  Name,
  nullable,
  OrganizationParams,
  Time,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { requireKeyOf, requireProjectOf } from './within-organization.ts';

const Key = answerOf({
  id: Type.String(),
  name: Type.String(),
  display_prefix: Type.String(),
  project_id: Type.String(),
  project_name: Type.String(),
  created_by_user_id: nullable(Type.String()),
  created_by_name: nullable(Type.String()),
  created_at_ms: Time,
  last_used_at_ms: nullable(Time),
  revoked_at_ms: nullable(Time),
  expires_at_ms: nullable(Time),
  monthly_limit_micros: nullable(Micros),
  spent_this_month_micros: Micros,
});

const Secret = answerOf({ id: Type.String(), key: Type.String() });

const KeyList = answerOf({
  items: listOf(Key),
  active_max: Type.Integer({ description: 'How many active keys the organization may have.' }),
  next: nullable(Type.String({ description: 'The cursor of the next page; active keys are all in one.' })),
});

/** A lifetime from now on, because the browser's clock may be wrong. */
const Lifetime = nullable(
  Type.Integer({ minimum: 1, description: 'In milliseconds; null for a key that never expires.' }),
);

const KeyParams = Type.Object({ organization_id: Id, key_id: Id });

/**
 * Returns the routes of an organization's API keys: list, create, rotate, expire, limit, revoke. Only the response to its
 * creation has a key's secret.
 */
export function keyRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/keys' })
    .use(signedIn(services))
    .get(
      '/',
      async ({ actor, params: { organization_id }, query }) => {
        const { items, next } =
          query.revoked === 'true'
            ? await listRevokedKeys(services, actor, { organization_id, cursor: query.cursor ?? null })
            : { items: await listKeys(services, actor, { organization_id }), next: null };
        return { items: items.map(shown), active_max: ACTIVE_KEYS_MAX, next };
      },
      {
        params: OrganizationParams,
        query: Type.Object({ revoked: Type.Optional(Type.Literal('true')), cursor: Type.Optional(Id) }),
        response: KeyList,
      },
    )
    .post(
      '/',
      async ({ actor, params: { organization_id }, body: { lifetime_ms = null, ...asked } }) => {
        const { project_id } = asked;
        await requireProjectOf(services.store, actor, { organization_id, project_id }, 'create_keys');
        const given = { ...asked, expires_at_ms: endOf(services, lifetime_ms) };
        const { id, key } = await createKey(services, actor, given);
        return { id, key };
      },
      {
        params: OrganizationParams,
        body: Type.Object({
          project_id: Id,
          name: Name,
          lifetime_ms: Type.Optional(Lifetime),
          monthly_limit_micros: Type.Optional(nullable(Micros)),
        }),
        response: Secret,
      },
    )
    .patch(
      '/:key_id',
      async ({ actor, params, body: { lifetime_ms } }) => {
        await requireKeyOf(services.store, actor, params, 'see');
        const expires_at_ms = endOf(services, lifetime_ms);
        return await done(setKeyExpiry(services, actor, { key_id: params.key_id, expires_at_ms }));
      },
      { params: KeyParams, body: Type.Object({ lifetime_ms: Lifetime }), response: Done },
    )
    .post(
      '/:key_id/limit',
      async ({ actor, params, body: { monthly_limit_micros } }) => {
        await requireKeyOf(services.store, actor, params, 'see');
        return await done(setKeyLimit(services, actor, { key_id: params.key_id, monthly_limit_micros }));
      },
      {
        params: KeyParams,
        body: Type.Object({ monthly_limit_micros: nullable(Micros) }),
        response: Done,
      },
    )
    .post(
      '/:key_id/rotate',
      async ({ actor, params, body: { overlap_ms, lifetime_ms = null } }) => {
        await requireKeyOf(services.store, actor, params, 'see');
        const given = { key_id: params.key_id, overlap_ms, expires_at_ms: endOf(services, lifetime_ms) };
        const { id, key } = await rotateKey(services, actor, given);
        return { id, key };
      },
      {
        params: KeyParams,
        body: Type.Object({ overlap_ms: Type.Integer(), lifetime_ms: Type.Optional(Lifetime) }),
        response: Secret,
      },
    )
    .delete(
      '/:key_id',
      async ({ actor, params }) => {
        // Every member may revoke their own keys; the rule checks that.
        await requireKeyOf(services.store, actor, params, 'see');
        return await revokeKey(services, actor, params.key_id);
      },
      { params: KeyParams, response: answerOf({ revoked_at_ms: Time }) },
    );
}

/** Returns the time at which a key with that lifetime expires; null for never. */
function endOf({ clock }: Pick<ConsoleServices, 'clock'>, lifetime_ms: number | null): number | null {
  return lifetime_ms === null ? null : clock.now_ms() + lifetime_ms;
}

function shown({ organization_id: _, organization_name: __, ...key }: ListedKey) {
  return key;
}
