import type { Role } from '../../accounts/roles.ts';
import { LINK_HOURS } from './link-tokens.ts';
import type { Mail } from './mail.ts';

/**
 * The texts of all mails. What a stranger typed is in none that goes to an address nobody has verified: a name could
 * carry somebody else's message.
 */

/** To a new user, with the link that verifies the address. */
export function verificationMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Verify your email address',
    text: `Open this link to verify your email address:

${link}

It works once, for ${hours(LINK_HOURS['verify-email'])}. If you did not sign up, ignore this mail.`,
  };
}

/** To a user who wants to set a new password. */
export function resetMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Set a new password',
    text: `Open this link to set a new password:

${link}

It works once, for ${hours(LINK_HOURS['reset-password'])}. If you did not ask for it, ignore this mail: your password stays as it is.`,
  };
}

/** To a user whose address somebody signed up with again. */
export function existingAccountMail(to: string, links: { sign_in: string; reset: string }): Mail {
  return {
    to,
    subject: 'You already have an account',
    text: `Somebody, probably you, signed up with this email address. It already has an account.

Sign in: ${links.sign_in}
Set a new password, or finish signing up: ${links.reset}

The second link works once, for ${hours(LINK_HOURS['reset-password'])}. If it was not you, ignore this mail: nothing has changed.`,
  };
}

/** To somebody who is invited into an organization. */
export function invitationMail(
  to: string,
  given: { organization_name: string; inviter_name: string | null; role: Role; link: string; days: number },
): Mail {
  const { organization_name, inviter_name, role, link, days } = given;
  const who = inviter_name === null ? 'You are invited' : `${inviter_name} invites you`;
  return {
    to,
    subject: `Invitation to ${organization_name}`,
    text: `${who} to join the organization ${organization_name} as ${role}. Open this link to accept:

${link}

It works once, for ${days} days. If you do not know the organization, ignore this mail.`,
  };
}

function hours(number: number): string {
  return number === 1 ? 'one hour' : `${number} hours`;
}
