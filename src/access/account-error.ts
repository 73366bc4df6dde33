import { ACCOUNT_ERRORS, type AccountErrorCode } from '../errors/errors.ts';

/**
 * A refusal by an account or credit service: a code for programs and one sentence for people. Nothing was
 * changed.
 */
export class AccountError extends Error {
  override readonly name = 'AccountError';

  constructor(
    readonly code: AccountErrorCode,
    message: string = ACCOUNT_ERRORS[code].message,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
