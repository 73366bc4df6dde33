import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import type { Role } from '../contract/roles.ts';
import { sameHash, secretHash } from '../hashing/secret-hash.ts';
import type { Invitation, ListedInvitation } from '../store/invitation-records.ts';
import type { Records } from '../store/store.ts';
import { DAY_MS } from '../time/clock.ts';
import { requireFirstIsOwner, requireMayTouch } from './members.ts';
import { checkedEmail } from './names.ts';
import { readOrganization } from './organizations.ts';

/** The most open invitations of an organization. */
export const OPEN_INVITATIONS_MAX = 100;

/** The time in which an invitation can be accepted. */
export const INVITATION_MS = 7 * DAY_MS;

/** An invitation to be mailed. */
export interface SentInvitation {
  readonly id: string;
  readonly organization_id: string;
  readonly organization_name: string;
  readonly email: string;
  readonly role: Role;
  readonly expires_at_ms: number;
  /**
   * True if somebody has paid for the organization, or the operator invites or gave it a tier; a stranger can
   * do neither.
   */
  readonly is_trusted: boolean;
  /** The token of the mailed link, which is neither stored nor shown to the inviter. */
  readonly token: string;
}

/** An invitation, as the holder of its link reads it before accepting. */
export type OfferedInvitation = Omit<SentInvitation, 'id' | 'is_trusted' | 'token'>;

/**
 * Invites an address into an organization for 7 days: owners with any role, admins with any but owner. An earlier open
 * invitation of the address is revoked. The first member of an organization must be an owner. Rejects with `not_found`,
 * `permission_denied`, `invalid_email`, `already_member`, `invalid_role`, `too_many_invitations`.
 */
export async function invite(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly email: string; readonly role: Role },
): Promise<SentInvitation> {
  const { store, clock, identifiers } = context;
  const { organization_id, role } = given;
  const token = identifiers.linkToken();
  return await store.transaction(async (records) => {
    const { invitations } = records;
    await requirePermission(records, actor, organization_id, 'manage_members');
    await requireMayTouch(records, actor, organization_id, role);
    const email = checkedEmail(given.email);
    await requireNoMember(records, organization_id, email);
    await requireFirstIsOwner(records, organization_id, role);
    const now_ms = clock.now_ms();
    await invitations.revokeInvitationsInto(organization_id, email, now_ms);
    if ((await invitations.countOpen(organization_id, now_ms)) >= OPEN_INVITATIONS_MAX) {
      throw new AccountError('too_many_invitations');
    }
    const invitation: Invitation = {
      id: identifiers.id('invitation'),
      organization_id,
      email,
      role,
      invited_by_user_id: actor.user_id,
      token_sha256: secretHash(token),
      created_at_ms: now_ms,
      expires_at_ms: now_ms + INVITATION_MS,
      accepted_at_ms: null,
      revoked_at_ms: null,
    };
    await invitations.insertInvitation(invitation);
    await recordAct(records, context, actor, {
      action: 'invitation.create',
      organization_id,
      object_id: invitation.id,
      detail: { role },
    });
    return await toSend(records, actor, invitation, token);
  });
}

/**
 * Returns the open invitations of an organization (owners and admins), newest first. Rejects with
 * `not_found`, `permission_denied`.
 */
export async function listInvitations(
  { store, clock }: AccountContext,
  actor: Actor,
  organization_id: string,
): Promise<ListedInvitation[]> {
  await requirePermission(store, actor, organization_id, 'manage_members');
  return await store.invitations.openInvitations(organization_id, clock.now_ms());
}

/**
 * Gives an open invitation a new link for 7 days and ends the old link (for members who may invite with its
 * role). The sender becomes its inviter. Rejects with `not_found`, `permission_denied`, `invitation_ended`.
 */
export async function resendInvitation(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly invitation_id: string },
): Promise<SentInvitation> {
  const { store, clock, identifiers } = context;
  const token = identifiers.linkToken();
  return await store.transaction(async (records) => {
    const invitation = await requireInvitation(records, actor, given);
    requireOpen(invitation, clock.now_ms());
    const renewed = {
      // The sender is its inviter from now on, so that it stays when the earlier inviter leaves.
      invited_by_user_id: actor.user_id,
      token_sha256: secretHash(token),
      expires_at_ms: clock.now_ms() + INVITATION_MS,
    };
    await records.invitations.renewInvitation(invitation.id, renewed);
    await recordAct(records, context, actor, {
      action: 'invitation.resend',
      organization_id: invitation.organization_id,
      object_id: invitation.id,
      detail: { role: invitation.role },
    });
    return await toSend(records, actor, { ...invitation, ...renewed }, token);
  });
}

/**
 * Revokes an invitation (for members who may invite with its role). Revoking it again changes nothing.
 * Rejects with `not_found`, `permission_denied`, and `invitation_ended` for one that was accepted or has
 * expired.
 */
export async function revokeInvitation(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly invitation_id: string },
): Promise<void> {
  const { store, clock } = context;
  await store.transaction(async (records) => {
    const invitation = await requireInvitation(records, actor, given);
    if (invitation.revoked_at_ms !== null) return;
    requireOpen(invitation, clock.now_ms());
    await records.invitations.revokeInvitation(invitation.id, clock.now_ms());
    await recordAct(records, context, actor, {
      action: 'invitation.revoke',
      organization_id: invitation.organization_id,
      object_id: invitation.id,
      detail: { role: invitation.role },
    });
  });
}

/**
 * Returns an open invitation, for the holder of its link. Rejects with `not_found` for an unknown token,
 * `invitation_ended`.
 */
export async function readInvitation(
  { store, clock }: AccountContext,
  token: string,
): Promise<OfferedInvitation> {
  const { organization_id, email, role, expires_at_ms } = await findOpen(store, token, clock.now_ms());
  const { name } = await readOrganization(store, organization_id);
  return { organization_id, organization_name: name, email, role, expires_at_ms };
}

/**
 * Makes the user a member with the role of the invitation, once. The link alone is not enough: the user's
 * address must be the invited one, and verified. Rejects with `not_found`, `permission_denied` (the
 * operator), `invitation_ended`, `wrong_address`, `email_not_verified`, `already_member`, `invalid_role`.
 */
export async function acceptInvitation(
  context: AccountContext,
  actor: Actor,
  token: string,
): Promise<{ readonly organization_id: string; readonly role: Role }> {
  if (actor.kind !== 'user') throw new AccountError('permission_denied');
  const { user_id } = actor;
  const { store, clock } = context;
  return await store.transaction(async (records) => {
    const { accounts, invitations } = records;
    const now_ms = clock.now_ms();
    const { id, organization_id, email, role } = await findOpen(records, token, now_ms);
    const user = await accounts.findUser(user_id);
    if (user?.email !== email) throw new AccountError('wrong_address');
    const standing = await accounts.standingOf(user_id);
    if (standing?.email_verified !== true) throw new AccountError('email_not_verified');
    if ((await accounts.roleOf({ organization_id, user_id })) !== null) {
      throw new AccountError('already_member');
    }
    await requireFirstIsOwner(records, organization_id, role);
    await accounts.insertMember({ organization_id, user_id, role, created_at_ms: now_ms });
    await invitations.acceptInvitation(id, now_ms);
    await recordAct(records, context, actor, {
      action: 'invitation.accept',
      organization_id,
      object_id: id,
      detail: { role },
    });
    return { organization_id, role };
  });
}

async function findOpen(
  { invitations }: Pick<Records, 'invitations'>,
  token: string,
  now_ms: number,
): Promise<Invitation> {
  const token_sha256 = secretHash(token);
  const invitation = await invitations.findInvitationByToken(token_sha256);
  if (invitation === undefined || !sameHash(invitation.token_sha256, token_sha256)) {
    throw new AccountError('not_found', 'There is no such invitation.');
  }
  requireOpen(invitation, now_ms);
  return invitation;
}

function requireOpen({ accepted_at_ms, revoked_at_ms, expires_at_ms }: Invitation, now_ms: number): void {
  if (accepted_at_ms !== null || revoked_at_ms !== null || now_ms >= expires_at_ms) {
    throw new AccountError('invitation_ended');
  }
}

/** Returns the organization's invitation, if the actor may change it. */
async function requireInvitation(
  records: Pick<Records, 'accounts' | 'invitations'>,
  actor: Actor,
  given: { readonly organization_id: string; readonly invitation_id: string },
): Promise<Invitation> {
  const { organization_id, invitation_id } = given;
  await requirePermission(records, actor, organization_id, 'manage_members');
  const invitation = await records.invitations.findInvitation(invitation_id);
  if (invitation?.organization_id !== organization_id) {
    throw new AccountError('not_found', 'There is no such invitation.');
  }
  await requireMayTouch(records, actor, organization_id, invitation.role);
  return invitation;
}

async function requireNoMember(
  { accounts }: Pick<Records, 'accounts'>,
  organization_id: string,
  email: string,
): Promise<void> {
  const user = await accounts.findUserByEmail(email);
  if (user !== undefined && (await accounts.roleOf({ organization_id, user_id: user.id })) !== null) {
    throw new AccountError('already_member');
  }
}

async function toSend(
  records: Pick<Records, 'accounts'>,
  actor: Actor,
  { id, organization_id, email, role, expires_at_ms }: Invitation,
  token: string,
): Promise<SentInvitation> {
  const { name, first_paid_at_ms, minimum_tier } = await readOrganization(records, organization_id);
  const is_trusted = actor.kind === 'operator' || first_paid_at_ms !== null || minimum_tier !== null;
  return { id, organization_id, organization_name: name, email, role, expires_at_ms, is_trusted, token };
}
