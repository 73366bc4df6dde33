import { store, stored } from './browser-storage.ts';

const STORED_AS = 'tds-invitation';

/** The page that accepts the stored invitation. */
export const INVITATION_PATH = '/console/invitation';

/**
 * Stores the token of an invitation for this tab while its reader signs in, so that it is in no address on the way.
 * Without an account of the invited address it is enough to join, so that nobody else who uses the browser may find it.
 */
export function keepInvitation(token: string): void {
  // A browser that stores nothing still has the mail of the invitation.
  store(STORED_AS, token, 'sessionStorage');
}

/** Returns the token that is stored for this tab, or null. */
export function keptInvitation(): string | null {
  return stored(STORED_AS, 'sessionStorage');
}

/** Removes a stored token. */
export function forgetInvitation(token: string): void {
  if (keptInvitation() === token) store(STORED_AS, null, 'sessionStorage');
}
