import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { permits, requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import { mayTouchRole, type Role } from '../contract/roles.ts';
import type { Member, MemberRef } from '../store/account-records.ts';
import type { Records } from '../store/store.ts';
import { requireUser } from './require-user.ts';
import { revokeInvitationsOf } from './revoke-invitations.ts';

type Accounts = Pick<Records, 'accounts'>;

/** A member of a list. Only owners and admins see who has a second factor; others have null. */
export interface ListedMember extends Omit<Member, 'has_second_factor'> {
  readonly has_second_factor: boolean | null;
}

/** Returns the members of an organization in the order in which they joined. Rejects with `not_found`. */
export async function listMembers(
  { store }: AccountContext,
  actor: Actor,
  organization_id: string,
): Promise<ListedMember[]> {
  await requirePermission(store, actor, organization_id, 'see');
  const may_manage = await permits(store, actor, organization_id, 'manage_members');
  const members = await store.accounts.membersOf(organization_id);
  return members.map((member) => (may_manage ? member : { ...member, has_second_factor: null }));
}

/**
 * Rejects with `permission_denied` unless the actor may give and remove the role: only owners and the
 * operator may do so with the owner role.
 */
export async function requireMayTouch(
  { accounts }: Accounts,
  actor: Actor,
  organization_id: string,
  role: Role,
): Promise<void> {
  if (actor.kind === 'operator') return;
  const own = await accounts.roleOf({ organization_id, user_id: actor.user_id });
  if (own === null || !mayTouchRole(own, role)) {
    throw new AccountError('permission_denied', 'Only an owner can give or take the owner role.');
  }
}

/** Rejects with `invalid_role` unless the role is an owner's or the organization has a member. */
export async function requireFirstIsOwner(
  { accounts }: Accounts,
  organization_id: string,
  role: Role,
): Promise<void> {
  if (role !== 'owner' && (await accounts.countMembers(organization_id)) === 0) {
    throw new AccountError('invalid_role');
  }
}

async function existingRole({ accounts }: Accounts, member: MemberRef): Promise<Role> {
  const role = await accounts.roleOf(member);
  if (role === null) throw new AccountError('not_found', 'This user is not a member of the organization.');
  return role;
}

async function requireOtherOwner({ accounts }: Accounts, organization_id: string): Promise<void> {
  if ((await accounts.countMembers(organization_id, 'owner')) < 2) throw new AccountError('last_owner');
}

/**
 * Adds a user as a member. Owners may give any role, admins any but owner. The first member, whom only the operator
 * can add, must be an owner. Rejects with `not_found`, `permission_denied`, `already_member`, `invalid_role`.
 */
export function addMember(
  context: AccountContext,
  actor: Actor,
  given: MemberRef & { readonly role: Role },
): Promise<void> {
  const { store, clock } = context;
  const { organization_id, user_id, role } = given;
  return store.transaction(async (records) => {
    const { accounts } = records;
    await requirePermission(records, actor, organization_id, 'manage_members');
    await requireMayTouch(records, actor, organization_id, role);
    await requireUser(records, user_id);
    if ((await accounts.roleOf(given)) !== null) throw new AccountError('already_member');
    await requireFirstIsOwner(records, organization_id, role);
    await accounts.insertMember({ organization_id, user_id, role, created_at_ms: clock.now_ms() });
    await recordAct(records, context, actor, {
      action: 'member.add',
      organization_id,
      object_id: user_id,
      detail: { role },
    });
  });
}

/**
 * Gives a member another role; invitations that they sent and may no longer send are revoked. Owners may
 * change everyone, admins everyone but owners, and an organization keeps an owner. Rejects with `not_found`,
 * `permission_denied`, `last_owner`.
 */
export function changeRole(
  context: AccountContext,
  actor: Actor,
  given: MemberRef & { readonly role: Role },
): Promise<void> {
  const { organization_id, user_id, role } = given;
  return context.store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'manage_members');
    const before = await existingRole(records, given);
    await requireMayTouch(records, actor, organization_id, before);
    await requireMayTouch(records, actor, organization_id, role);
    if (before === 'owner' && role !== 'owner') await requireOtherOwner(records, organization_id);
    if (before === role) return;
    await records.accounts.writeRole(given, role);
    await recordAct(records, context, actor, {
      action: 'member.role',
      organization_id,
      object_id: user_id,
      detail: { from: before, to: role, ...(await revokeInvitationsOf(records, context, given, role)) },
    });
  });
}

/**
 * Removes a member; their keys stay, and the invitations that they sent are revoked. Owners may remove everyone,
 * admins everyone but owners, and every member may leave, except the last owner. Rejects with `not_found`, `permission_denied`, `last_owner`.
 */
export function removeMember(context: AccountContext, actor: Actor, member: MemberRef): Promise<void> {
  const { organization_id, user_id } = member;
  return context.store.transaction(async (records) => {
    const leaves = actor.kind === 'user' && actor.user_id === user_id;
    await requirePermission(records, actor, organization_id, leaves ? 'see' : 'manage_members');
    const role = await existingRole(records, member);
    await requireMayTouch(records, actor, organization_id, role);
    if (role === 'owner') await requireOtherOwner(records, organization_id);
    await records.accounts.deleteMember(member);
    await recordAct(records, context, actor, {
      action: leaves ? 'member.leave' : 'member.remove',
      organization_id,
      object_id: user_id,
      detail: { role, ...(await revokeInvitationsOf(records, context, member, null)) },
    });
  });
}
