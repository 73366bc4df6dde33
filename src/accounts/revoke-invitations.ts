import type { AccountContext } from '../access/context.ts';
import { mayInviteAs, ROLES, type Role } from '../contract/roles.ts';
import type { MemberRef } from '../store/account-records.ts';
import type { AuditLogDetail } from '../store/audit-log-records.ts';
import type { Records } from '../store/store.ts';

/**
 * Revokes a member's open invitations that their new role does not allow; null for a member who has left.
 * Otherwise they could rejoin by an invitation to another of their addresses. To be called inside the
 * transaction of the change. Returns the audit entries; none where nothing was revoked.
 */
export async function revokeInvitationsOf(
  { invitations }: Pick<Records, 'invitations'>,
  { clock }: Pick<AccountContext, 'clock'>,
  { organization_id, user_id }: MemberRef,
  role: Role | null,
): Promise<AuditLogDetail> {
  const roles = ROLES.filter((one) => role === null || !mayInviteAs(role, one));
  const number = await invitations.revokeInvitationsBy(organization_id, user_id, roles, clock.now_ms());
  return number === 0 ? {} : { revoked_invitations: number };
}
