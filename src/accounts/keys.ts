import { and, asc, count, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { apiKeys, members, organizations, projects, users } from '../../db/sqlite/schema.ts';
import { type Actor, userIdOf } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { keyDisplayPrefix, keyHash } from './key-format.ts';
import { checkedName } from './names.ts';
import { requireProject } from './projects.ts';
import { permits, requirePermission } from './synchronous.ts';

/** How many active keys an organization may have (spec, "Limits"). */
export const ACTIVE_KEYS_MAX = 100;

export interface CreatedKey {
  readonly id: string;
  /** The secret: shown this once, never stored. */
  readonly key: string;
  readonly name: string;
  readonly project_id: string;
  readonly display_prefix: string;
  readonly created_at_ms: number;
}

/** A key as it is listed. */
export interface ListedKey {
  readonly id: string;
  readonly name: string;
  /** The first 12 characters of the secret. */
  readonly display_prefix: string;
  readonly organization_id: string;
  readonly organization_name: string;
  readonly project_id: string;
  readonly project_name: string;
  /** Both null for a key that the operator made. */
  readonly created_by_user_id: string | null;
  readonly created_by_name: string | null;
  readonly created_at_ms: number;
  readonly last_used_at_ms: number | null;
  readonly revoked_at_ms: number | null;
}

function countActiveKeys(context: AccountContext, organization_id: string): number {
  const row = context.db
    .select({ number: count() })
    .from(apiKeys)
    .innerJoin(projects, eq(projects.id, apiKeys.project_id))
    .where(and(eq(projects.organization_id, organization_id), isNull(apiKeys.revoked_at_ms)))
    .get();
  return row?.number ?? 0;
}

/**
 * Creates a key of a project (owners, admins and developers); it works at once. Throws `invalid_name`, `not_found`,
 * `permission_denied`, `project_archived`, `too_many_keys`.
 */
export function createKey(
  context: AccountContext,
  actor: Actor,
  given: { readonly project_id: string; readonly name: string },
): CreatedKey {
  const name = checkedName(given.name);
  const { db, clock, identifiers } = context;
  return transact(db, () => {
    const project = requireProject(context, actor, given.project_id, 'create_keys');
    if (project.archived_at_ms !== null) throw new AccountError('project_archived');
    if (countActiveKeys(context, project.organization_id) >= ACTIVE_KEYS_MAX) {
      throw new AccountError('too_many_keys');
    }
    const key = identifiers.apiKey();
    const stored = {
      id: identifiers.id('key'),
      project_id: project.id,
      name,
      display_prefix: keyDisplayPrefix(key),
      created_at_ms: clock.now_ms(),
    };
    db.insert(apiKeys)
      .values({ ...stored, secret_sha256: keyHash(key), created_by_user_id: userIdOf(actor) })
      .run();
    return { ...stored, key };
  });
}

/**
 * The active keys (or, with `revoked`, the revoked ones) that the actor may see: of one organization, of one project,
 * or of all of theirs, oldest first. Throws `not_found`.
 */
export function listKeys(
  context: AccountContext,
  actor: Actor,
  filter: {
    readonly organization_id?: string;
    readonly project_id?: string;
    readonly revoked?: boolean;
  } = {},
): ListedKey[] {
  const { db } = context;
  if (filter.organization_id !== undefined) requirePermission(db, actor, filter.organization_id, 'see');
  if (filter.project_id !== undefined) requireProject(context, actor, filter.project_id, 'see');
  const visible =
    actor.kind === 'operator'
      ? undefined
      : sql`${projects.organization_id} IN (SELECT ${members.organization_id} FROM ${members} WHERE ${members.user_id} = ${actor.user_id})`;
  return db
    .select({
      id: apiKeys.id,
      name: apiKeys.name,
      display_prefix: apiKeys.display_prefix,
      organization_id: organizations.id,
      organization_name: organizations.name,
      project_id: projects.id,
      project_name: projects.name,
      created_by_user_id: apiKeys.created_by_user_id,
      created_by_name: users.name,
      created_at_ms: apiKeys.created_at_ms,
      last_used_at_ms: apiKeys.last_used_at_ms,
      revoked_at_ms: apiKeys.revoked_at_ms,
    })
    .from(apiKeys)
    .innerJoin(projects, eq(projects.id, apiKeys.project_id))
    .innerJoin(organizations, eq(organizations.id, projects.organization_id))
    .leftJoin(users, eq(users.id, apiKeys.created_by_user_id))
    .where(
      and(
        visible,
        filter.organization_id === undefined ? undefined : eq(organizations.id, filter.organization_id),
        filter.project_id === undefined ? undefined : eq(projects.id, filter.project_id),
        filter.revoked === true ? isNotNull(apiKeys.revoked_at_ms) : isNull(apiKeys.revoked_at_ms),
      ),
    )
    .orderBy(asc(apiKeys.created_at_ms), asc(apiKeys.id))
    .all();
}

/**
 * Revokes a key for good: owners and admins any key, every member a key that they created. Running servers refuse it
 * within 60 seconds. Revoking it again changes nothing. Throws `not_found`, `permission_denied`.
 */
export function revokeKey(
  context: AccountContext,
  actor: Actor,
  key_id: string,
): { readonly revoked_at_ms: number } {
  const { db, clock } = context;
  return transact(db, () => {
    const key = db
      .select({
        organization_id: projects.organization_id,
        created_by_user_id: apiKeys.created_by_user_id,
        revoked_at_ms: apiKeys.revoked_at_ms,
      })
      .from(apiKeys)
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .where(eq(apiKeys.id, key_id))
      .get();
    if (key === undefined || !permits(db, actor, key.organization_id, 'see')) {
      throw new AccountError('not_found', 'There is no such API key.');
    }
    const isCreator = actor.kind === 'user' && key.created_by_user_id === actor.user_id;
    if (!isCreator) requirePermission(db, actor, key.organization_id, 'revoke_any_key');
    if (key.revoked_at_ms !== null) return { revoked_at_ms: key.revoked_at_ms };
    const revoked_at_ms = clock.now_ms();
    db.update(apiKeys).set({ revoked_at_ms }).where(eq(apiKeys.id, key_id)).run();
    return { revoked_at_ms };
  });
}
