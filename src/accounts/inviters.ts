import type { Records } from '../store.ts';
import type { TrailDetail } from '../trail/trail-records.ts';
import type { MemberRef } from './account-records.ts';
import type { AccountContext } from './context.ts';
import { mayInviteAs, ROLES, type Role } from './roles.ts';

/**
 * Revokes the open invitations that a member sent and may not send with the role that they now have; null has left.
 * Otherwise they could come back by an invitation of another address of theirs. To be called inside the transaction of
 * the change. What the trail says of it; nothing where there were none.
 */
export async function revokeInvitationsOf(
  { invitations }: Pick<Records, 'invitations'>,
  { clock }: Pick<AccountContext, 'clock'>,
  { organization_id, user_id }: MemberRef,
  role: Role | null,
): Promise<TrailDetail> {
  const roles = ROLES.filter((one) => role === null || !mayInviteAs(role, one));
  const number = await invitations.revokeInvitationsBy(organization_id, user_id, roles, clock.now_ms());
  return number === 0 ? {} : { revoked_invitations: number };
}
