import { and, eq } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import { members, organizations, type ROLES } from '../../db/sqlite/schema.ts';
import type { Actor } from './actor.ts';
import { AccountError } from './errors.ts';

export type Role = (typeof ROLES)[number];

/**
 * What each role may do in its organization. Keys follow the spec's role table; a creator may besides always revoke a
 * key of their own. Everything that only the operator may do has no row here.
 */
const PERMISSIONS = {
  /** See members, projects, keys, usage, credit and its history. */
  see: ['owner', 'admin', 'developer', 'billing', 'reader'],
  manage_organization: ['owner', 'admin'],
  /** Add, change and remove members; owners only by owners (`members.ts`). */
  manage_members: ['owner', 'admin'],
  /** Create and archive projects and set their spend limits. */
  manage_projects: ['owner', 'admin'],
  create_keys: ['owner', 'admin', 'developer'],
  revoke_any_key: ['owner', 'admin'],
  top_up: ['owner', 'admin', 'billing'],
} as const satisfies Record<string, readonly Role[]>;

export type Permission = keyof typeof PERMISSIONS;

/** Whether a role has a permission. */
export function allows(role: Role, permission: Permission): boolean {
  const roles: readonly Role[] = PERMISSIONS[permission];
  return roles.includes(role);
}

/** The role of a user in an organization; null for one who is no member. */
export function roleOf(db: Db, organization_id: string, user_id: string): Role | null {
  const member = db
    .select({ role: members.role })
    .from(members)
    .where(and(eq(members.organization_id, organization_id), eq(members.user_id, user_id)))
    .get();
  return member?.role ?? null;
}

/** Whether the actor may do this in the organization; a user who is no member may do nothing. */
export function permits(db: Db, actor: Actor, organization_id: string, permission: Permission): boolean {
  if (actor.kind === 'operator') return true;
  const role = roleOf(db, organization_id, actor.user_id);
  return role !== null && allows(role, permission);
}

/**
 * Throws `not_found` when there is no such organization, or the actor is no member and shall not learn that there is
 * one, and `permission_denied` when the actor's role does not allow it.
 */
export function requirePermission(
  db: Db,
  actor: Actor,
  organization_id: string,
  permission: Permission,
): void {
  const exists = db
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, organization_id))
    .get();
  if (exists === undefined || !permits(db, actor, organization_id, 'see')) {
    throw new AccountError('not_found', 'There is no such organization.');
  }
  if (!permits(db, actor, organization_id, permission)) throw new AccountError('permission_denied');
}

/** Throws `permission_denied` for everyone but the operator. */
export function requireOperator(actor: Actor): void {
  if (actor.kind !== 'operator') throw new AccountError('permission_denied');
}
