import type { Role } from '../contract/roles.ts';

/** An invitation of an address into an organization. It is open until it is accepted, revoked or expired. */
export interface Invitation {
  readonly id: string;
  readonly organization_id: string;
  /** The address in lower case. */
  readonly email: string;
  readonly role: Role;
  /** The user who sent it last; null for the operator at the command line. */
  readonly invited_by_user_id: string | null;
  /** 64 hexadecimal characters; only the link has the token itself. */
  readonly token_sha256: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
  readonly accepted_at_ms: number | null;
  readonly revoked_at_ms: number | null;
}

/** A listed open invitation. */
export interface ListedInvitation extends Omit<Invitation, 'token_sha256'> {
  readonly organization_name: string;
  readonly invited_by_name: string | null;
}

/** The stored invitations. The open ones expire after `now_ms`. */
export interface InvitationRecords {
  insertInvitation(invitation: Invitation): Promise<void>;
  findInvitation(invitation_id: string): Promise<Invitation | undefined>;
  findInvitationByToken(token_sha256: string): Promise<Invitation | undefined>;
  /** Returns the open invitations of an organization, newest first. */
  openInvitations(organization_id: string, now_ms: number): Promise<ListedInvitation[]>;
  countOpen(organization_id: string, now_ms: number): Promise<number>;
  renewInvitation(
    invitation_id: string,
    values: Pick<Invitation, 'invited_by_user_id' | 'token_sha256' | 'expires_at_ms'>,
  ): Promise<void>;
  acceptInvitation(invitation_id: string, accepted_at_ms: number): Promise<void>;
  revokeInvitation(invitation_id: string, revoked_at_ms: number): Promise<void>;
  /**
   * Revokes the invitations of one organization, or of one address in it, that are neither accepted nor
   * revoked.
   */
  revokeInvitationsInto(organization_id: string, email: string | null, revoked_at_ms: number): Promise<void>;
  /** Revokes a user's open invitations into an organization with one of these roles. Returns their number. */
  revokeInvitationsBy(
    organization_id: string,
    user_id: string,
    roles: readonly Role[],
    now_ms: number,
  ): Promise<number>;
  /**
   * Revokes an address's invitations that are neither accepted nor revoked, and replaces the address with
   * `instead`.
   */
  forgetAddress(email: string, instead: string, revoked_at_ms: number): Promise<void>;
}
