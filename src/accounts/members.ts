import { and, asc, count, eq } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { members, users } from '../../db/sqlite/schema.ts';
import type { Actor } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import type { Role } from './roles.ts';
import { requirePermission, roleOf } from './synchronous.ts';

export interface Member {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly created_at_ms: number;
}

/** Which member of which organization. */
export interface MemberRef {
  readonly organization_id: string;
  readonly user_id: string;
}

function isMember(ref: MemberRef) {
  return and(eq(members.organization_id, ref.organization_id), eq(members.user_id, ref.user_id));
}

/** The members of an organization in the order in which they joined. Throws `not_found`. */
export function listMembers(context: AccountContext, actor: Actor, organization_id: string): Member[] {
  requirePermission(context.db, actor, organization_id, 'see');
  return context.db
    .select({
      user_id: users.id,
      email: users.email,
      name: users.name,
      role: members.role,
      created_at_ms: members.created_at_ms,
    })
    .from(members)
    .innerJoin(users, eq(users.id, members.user_id))
    .where(eq(members.organization_id, organization_id))
    .orderBy(asc(members.created_at_ms), asc(users.id))
    .all();
}

/** The owner role is given and taken by owners and the operator only. */
function requireMayTouch(context: AccountContext, actor: Actor, organization_id: string, role: Role): void {
  if (role !== 'owner' || actor.kind === 'operator') return;
  if (roleOf(context.db, organization_id, actor.user_id) !== 'owner') {
    throw new AccountError('permission_denied', 'Only an owner can give or take the owner role.');
  }
}

function existingRole(context: AccountContext, ref: MemberRef): Role {
  const role = roleOf(context.db, ref.organization_id, ref.user_id);
  if (role === null) throw new AccountError('not_found', 'This user is not a member of the organization.');
  return role;
}

function countMembers(context: AccountContext, organization_id: string, role?: Role): number {
  const row = context.db
    .select({ number: count() })
    .from(members)
    .where(
      and(
        eq(members.organization_id, organization_id),
        role === undefined ? undefined : eq(members.role, role),
      ),
    )
    .get();
  return row?.number ?? 0;
}

function requireOtherOwner(context: AccountContext, organization_id: string): void {
  if (countMembers(context, organization_id, 'owner') < 2) throw new AccountError('last_owner');
}

/**
 * Adds a user as a member. Owners may give any role, admins any but owner. The first member, whom only the operator
 * can add, must be an owner. Throws `not_found`, `permission_denied`, `already_member`, `invalid_role`.
 */
export function addMember(
  context: AccountContext,
  actor: Actor,
  given: MemberRef & { readonly role: Role },
): void {
  const { organization_id, user_id, role } = given;
  const { db, clock } = context;
  transact(db, () => {
    requirePermission(db, actor, organization_id, 'manage_members');
    requireMayTouch(context, actor, organization_id, role);
    const user = db.select({ id: users.id }).from(users).where(eq(users.id, user_id)).get();
    if (user === undefined) throw new AccountError('not_found', 'There is no such user.');
    if (roleOf(db, organization_id, user_id) !== null) throw new AccountError('already_member');
    if (role !== 'owner' && countMembers(context, organization_id) === 0)
      throw new AccountError('invalid_role');
    db.insert(members).values({ organization_id, user_id, role, created_at_ms: clock.now_ms() }).run();
  });
}

/**
 * Gives a member another role. Owners may change everyone, admins everyone but owners, and neither may leave the
 * organization without an owner. Throws `not_found`, `permission_denied`, `last_owner`.
 */
export function changeRole(
  context: AccountContext,
  actor: Actor,
  given: MemberRef & { readonly role: Role },
): void {
  const { organization_id, role } = given;
  const { db } = context;
  transact(db, () => {
    requirePermission(db, actor, organization_id, 'manage_members');
    const before = existingRole(context, given);
    requireMayTouch(context, actor, organization_id, before);
    requireMayTouch(context, actor, organization_id, role);
    if (before === 'owner' && role !== 'owner') requireOtherOwner(context, organization_id);
    db.update(members).set({ role }).where(isMember(given)).run();
  });
}

/**
 * Removes a member; their keys stay. Owners may remove everyone, admins everyone but owners, and every member may
 * leave, except the last owner. Throws `not_found`, `permission_denied`, `last_owner`.
 */
export function removeMember(context: AccountContext, actor: Actor, ref: MemberRef): void {
  const { db } = context;
  transact(db, () => {
    const leaves = actor.kind === 'user' && actor.user_id === ref.user_id;
    requirePermission(db, actor, ref.organization_id, leaves ? 'see' : 'manage_members');
    const role = existingRole(context, ref);
    requireMayTouch(context, actor, ref.organization_id, role);
    if (role === 'owner') requireOtherOwner(context, ref.organization_id);
    db.delete(members).where(isMember(ref)).run();
  });
}
