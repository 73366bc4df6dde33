const STORED_AS = 'tds-invitation';

/** The page that takes up the kept invitation. */
export const INVITATION_PATH = '/console/invitation';

/** The token of an invitation, and the address that it is for. */
export interface KeptInvitation {
  readonly token: string;
  readonly email: string;
}

/**
 * Keeps the invitation that somebody follows while they sign in, or sign up and come back by another mail. So it is in
 * no address on the way. The token alone opens nothing: the invited address must be signed in.
 */
export function keepInvitation({ token, email }: KeptInvitation): void {
  try {
    localStorage.setItem(STORED_AS, JSON.stringify({ token, email }));
  } catch {
    // A browser that stores nothing has the mail of the invitation.
  }
}

/** The invitation that was kept in this browser; null where there is none. */
export function keptInvitation(): KeptInvitation | null {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STORED_AS) ?? 'null');
    return isInvitation(kept) ? kept : null;
  } catch {
    return null;
  }
}

/** The token of the kept invitation if it is for that address: several people may use one browser. */
export function keptInvitationFor(email: string | null): string | null {
  const kept = keptInvitation();
  return kept !== null && kept.email.toLowerCase() === email?.toLowerCase() ? kept.token : null;
}

/** Forgets an invitation, unless it is another one that is kept. */
export function forgetInvitation(token: string): void {
  if (keptInvitation()?.token !== token) return;
  try {
    localStorage.removeItem(STORED_AS);
  } catch {
    // It stays, and is refused.
  }
}

function isInvitation(kept: unknown): kept is KeptInvitation {
  if (typeof kept !== 'object' || kept === null || !('token' in kept) || !('email' in kept)) return false;
  return typeof kept.token === 'string' && typeof kept.email === 'string';
}
