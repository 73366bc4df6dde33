import type { Role } from '../../contract/roles.ts';
import { LINK_HOURS } from './link-tokens.ts';
import type { Mail } from './mail.ts';

/**
 * The texts of all mails but alerts (`alert-mail.ts`). Only the invitation contains user input: the names of the inviter and the
 * organization, and never in the subject. Before a payment for the organization it has none either, so that a
 * free account cannot send its own words to strangers.
 */

/** Returns the mail to a new user, with the link that verifies the address. */
export function verificationMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Verify your email address',
    text: `Open this link, and enter the password that you signed up with, to verify your email address:

${link}

It works once, for ${hours(LINK_HOURS['verify-email'])}. If you did not sign up, ignore this mail.`,
  };
}

/** Returns the mail to a user who wants to set a new password. */
export function resetMail(to: string, link: string): Mail {
  return {
    to,
    subject: 'Set a new password',
    text: `Open this link to set a new password:

${link}

It works once, for ${hours(LINK_HOURS['reset-password'])}. If you did not ask for it, ignore this mail: your password stays as it is.`,
  };
}

/** Returns the mail to a user whose address somebody signed up with again. */
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

/** Returns the mail to a person who is invited into an organization. */
export function invitationMail(
  to: string,
  given: {
    organization_name: string | null;
    inviter_name: string | null;
    role: Role;
    link: string;
    days: number;
  },
): Mail {
  const { organization_name, inviter_name, role, link, days } = given;
  const inviter = mentioned(inviter_name);
  const organization = mentioned(organization_name);
  const who = inviter === null ? 'You are invited' : `${inviter} invites you`;
  const where = organization === null ? 'an organization' : `the organization ${organization}`;
  return {
    to,
    subject: 'You are invited to an organization',
    text: `${who} to join ${where} as ${role}. Open this link to accept:

${link}

It works once, for ${days} days. If you do not know the organization, ignore this mail.`,
  };
}

/** The most characters of a name in a mail. */
const MENTIONED_MAX = 40;

/**
 * Returns a name for a mail: on one line, shortened, and without digits in a row, such as telephone numbers.
 * Returns null for one that a mail program could turn into a link.
 */
export function mentioned(name: string | null): string | null {
  if (name === null || looksLikeLink(name)) return null;
  const plain = name
    .replace(/\p{Cf}/gu, '')
    .replace(/\p{Nd}(?:[^\p{L}\p{Nd}]*\p{Nd})+/gu, '…')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const characters = [...plain];
  const cut =
    characters.length > MENTIONED_MAX ? `${characters.slice(0, MENTIONED_MAX - 1).join('')}…` : plain;
  return looksLikeLink(cut) || cut === '' ? null : cut;
}

/**
 * Returns true if a mail program may make a link of a name: it has a character of addresses, or a dot between
 * words.
 */
function looksLikeLink(name: string): boolean {
  return /[/\\:@]|[^\s.][.\u3002\uff0e\uff61][^\s.]/u.test(name);
}

function hours(number: number): string {
  return number === 1 ? 'one hour' : `${number} hours`;
}
