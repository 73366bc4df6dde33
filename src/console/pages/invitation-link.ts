import { store, stored } from './browser-storage.ts';

const STORED_AS = 'tds-invitation';

/** The page that accepts the stored invitation. */
export const INVITATION_PATH = '/console/invitation';

/** The token of an invitation, and the invited address. */
export interface KeptInvitation {
  readonly token: string;
  readonly email: string;
}

/**
 * Stores the invitation while its reader signs in, so that its token is in no address on the way. The token alone is
 * not enough where the invited address has an account: it must be signed in.
 */
export function keepInvitation({ token, email }: KeptInvitation): void {
  // A browser that stores nothing still has the mail of the invitation.
  store(STORED_AS, JSON.stringify({ token, email }));
}

/** Returns the invitation that is stored in this browser, or null. */
export function keptInvitation(): KeptInvitation | null {
  try {
    const kept: unknown = JSON.parse(stored(STORED_AS) ?? 'null');
    return isInvitation(kept) ? kept : null;
  } catch {
    return null;
  }
}

/** Removes the stored invitation if it has this token. */
export function forgetInvitation(token: string): void {
  if (keptInvitation()?.token === token) store(STORED_AS, null);
}

function isInvitation(kept: unknown): kept is KeptInvitation {
  if (typeof kept !== 'object' || kept === null || !('token' in kept) || !('email' in kept)) return false;
  return typeof kept.token === 'string' && typeof kept.email === 'string';
}
