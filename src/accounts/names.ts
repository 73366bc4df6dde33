import { AccountError } from '../access/account-error.ts';

/** The limit in characters. */
export const NAME_LENGTH_MAX = 100;
const EMAIL_LENGTH_MAX = 254;

/** Control characters, line and paragraph separators, and halves of surrogate pairs. */
const FORBIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;
/** The addresses that sign-in takes: those of better-auth. */
const EMAIL = /^(?:[\w'+-]+\.)*[\w'+-]*[\w+-]@(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,}$/;

/**
 * Returns a name in its stored form: trimmed, 1 to 100 characters, no control characters. Throws
 * `invalid_name`.
 */
export function checkedName(name: string): string {
  const trimmed = name.trim();
  const length = [...trimmed].length;
  if (length === 0 || length > NAME_LENGTH_MAX || FORBIDDEN.test(trimmed)) {
    throw new AccountError('invalid_name');
  }
  return trimmed;
}

/** Returns an email address in its stored form: trimmed, in lower case. Throws `invalid_email`. */
export function checkedEmail(email: string): string {
  const trimmed = email.trim().toLowerCase();
  if (!isEmail(trimmed)) throw new AccountError('invalid_email');
  return trimmed;
}

/** Returns true for an email address in its stored form. */
export function isEmail(text: string): boolean {
  return text.length <= EMAIL_LENGTH_MAX && EMAIL.test(text);
}
