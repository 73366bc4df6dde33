import { SIGN_IN_ERRORS, type SignInErrorCode } from '../../errors/errors.ts';

/** A refusal of sign-in: a code for programs and one sentence for people. */
export class SignInError extends Error {
  override readonly name = 'SignInError';

  constructor(
    readonly code: SignInErrorCode,
    /** Whole seconds until another try can succeed; only with `too_many_attempts` and `too_busy`. */
    readonly retry_after_s: number | null = null,
  ) {
    super(SIGN_IN_ERRORS[code].message);
  }
}
