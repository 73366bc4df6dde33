/** Every reason for which sign-in refuses, with the sentence to show. None of them tells whether an account exists. */
const SIGN_IN_ERRORS = {
  not_signed_in: 'Sign in first.',
  wrong_credentials: 'The email address or the password is wrong.',
  wrong_password: 'The password is wrong.',
  email_not_verified: 'Verify your email address first: the link is in the mail that we sent.',
  password_too_short: 'A password must have at least 8 characters.',
  password_too_long: 'A password must have at most 128 characters.',
  invitation_needed: 'This service takes new people by invitation only: open the link of your invitation.',
  link_ended: 'This link was used, or has expired: ask for a new one.',
  too_many_attempts: 'Too many attempts: try again later.',
  too_busy: 'Too many people sign up or sign in at this moment: try again in a minute.',
} as const satisfies Record<string, string>;

export type SignInErrorCode = keyof typeof SIGN_IN_ERRORS;

/** A refusal of sign-in: a code to branch on and one sentence to show. */
export class SignInError extends Error {
  override readonly name = 'SignInError';

  constructor(
    readonly code: SignInErrorCode,
    /** Whole seconds until another try can succeed; only with `too_many_attempts` and `too_busy`. */
    readonly retry_after_s: number | null = null,
  ) {
    super(SIGN_IN_ERRORS[code]);
  }
}
