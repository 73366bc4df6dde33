import { ACCOUNT_ERRORS, type AccountErrorCode } from '../errors.ts';

/** A refusal of an account or credit service: a code to branch on and one sentence to show. Nothing was changed. */
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
