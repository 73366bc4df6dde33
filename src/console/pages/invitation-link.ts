const STORED_AS = 'tds-invitation';

/** The page that takes up an invitation. */
export function invitationPath(token: string): string {
  return `/console/invitation?${new URLSearchParams({ token })}`;
}

/**
 * Keeps the invitation with which somebody signs up, because the mail that verifies the address leads elsewhere. The
 * token alone opens nothing: the invited address must be signed in.
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
