import { COMMON_PASSWORDS } from './common-passwords.ts';
import { SignInError } from './sign-in-error.ts';

export const PASSWORD_LENGTH_MIN = 10;
export const PASSWORD_LENGTH_MAX = 128;

/**
 * Checks a new password. Throws `password_too_short`, `password_too_long`, and `password_too_common` for one of the
 * 10,000 most common, in capital letters or small ones.
 */
export function checkNewPassword(password: string): void {
  if (password.length < PASSWORD_LENGTH_MIN) throw new SignInError('password_too_short');
  if (password.length > PASSWORD_LENGTH_MAX) throw new SignInError('password_too_long');
  if (COMMON_PASSWORDS.has(password.toLowerCase())) throw new SignInError('password_too_common');
}
