const STORED_AS = 'tds-invitation';

/** The page that takes up the kept invitation. */
export const INVITATION_PATH = '/console/invitation';

/**
 * Keeps the invitation that somebody follows while they sign in, or sign up and come back by another mail. So it is in
 * no address on the way. The token alone opens nothing: the invited address must be signed in.
 */
export function keepInvitation(token: string): void {
  try {
    localStorage.setItem(STORED_AS, token);
  } catch {
    // A browser that stores nothing has the mail of the invitation.
  }
}

/** The invitation that was kept in this browser; null where there is none. */
export function keptInvitation(): string | null {
  try {
    return localStorage.getItem(STORED_AS);
  } catch {
    return null;
  }
}

/** Forgets the kept invitation. */
export function forgetInvitation(): void {
  try {
    localStorage.removeItem(STORED_AS);
  } catch {
    // Nothing was kept.
  }
}
