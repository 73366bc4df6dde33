import { allows, type Permission } from '../contract/roles.ts';
import type { Records } from '../store/store.ts';
import { AccountError } from './account-error.ts';
import type { Actor } from './actor.ts';

/** Returns true if the actor has the permission in the organization; a user who is not a member has none. */
export async function permits(
  { accounts }: Pick<Records, 'accounts'>,
  actor: Actor,
  organization_id: string,
  permission: Permission,
): Promise<boolean> {
  if (actor.kind === 'operator') return true;
  const role = await accounts.roleOf({ organization_id, user_id: actor.user_id });
  return role !== null && allows(role, permission);
}

/**
 * Rejects with `not_found` when there is no such organization, or the actor is not a member, who must not
 * learn that it exists. Rejects with `permission_denied` when the actor's role does not allow it.
 */
export async function requirePermission(
  records: Pick<Records, 'accounts'>,
  actor: Actor,
  organization_id: string,
  permission: Permission,
): Promise<void> {
  const organization = await records.accounts.findOrganization(organization_id);
  if (organization === undefined || !(await permits(records, actor, organization_id, 'see'))) {
    throw new AccountError('not_found', 'There is no such organization.');
  }
  if (!(await permits(records, actor, organization_id, permission))) {
    throw new AccountError('permission_denied');
  }
}

/** Throws `permission_denied` for everyone but the operator. */
export function requireOperator(actor: Actor): void {
  if (actor.kind !== 'operator') throw new AccountError('permission_denied');
}
