import type { CatalogChangeRefused } from '../../catalog/changes.ts';
import {
  ACCOUNT_ERRORS,
  type AccountErrorCode,
  type AnyErrorCode,
  CONSOLE_ERROR_TYPES,
  CONSOLE_ERRORS,
  type ConsoleEntry,
  type ConsoleErrorCode,
  type ConsoleStatus,
  type OverloadReason,
  Refusal,
  SIGN_IN_ERRORS,
} from '../../errors/errors.ts';
import type { SignInError } from '../people/sign-in-error.ts';

/** A refusal of the console: every field of the contract's error object, and the response's status. */
export class ConsoleRefusal extends Error {
  override readonly name = 'ConsoleRefusal';

  constructor(
    readonly status: ConsoleStatus,
    readonly code: AnyErrorCode,
    message: string,
    readonly param: string | null = null,
    readonly retry_after_s: number | null = null,
    readonly reason: OverloadReason | null = null,
    readonly is_client_gone?: true | undefined,
  ) {
    super(message);
  }

  get type(): string {
    return CONSOLE_ERROR_TYPES[this.status];
  }
}

/** Returns a refusal of the console itself. */
export function refused(code: ConsoleErrorCode): ConsoleRefusal {
  const { status, message } = CONSOLE_ERRORS[code];
  return new ConsoleRefusal(status, code, message);
}

/** Returns the refusal of a change of the catalog, with its sentence. */
export function refusedChange({ message }: CatalogChangeRefused): ConsoleRefusal {
  return new ConsoleRefusal(CONSOLE_ERRORS.change_refused.status, 'change_refused', message);
}

/** Returns the refusal of input that matches its schema but has no valid meaning. */
export function refusedInput(param: string, message: string): ConsoleRefusal {
  return new ConsoleRefusal(422, 'invalid_request', message, param);
}

/** Returns the refusal of a rule; `param` where the route has another name for the field than the rule. */
export function refusedByRule(
  { code, message }: { readonly code: AccountErrorCode; readonly message: string },
  param: string | null = paramOf(ACCOUNT_ERRORS[code]),
): ConsoleRefusal {
  return new ConsoleRefusal(ACCOUNT_ERRORS[code].status, code, message, param);
}

/** Returns the refusal of sign-in. */
export function refusedBySignIn({ code, message, retry_after_s }: SignInError): ConsoleRefusal {
  const row = SIGN_IN_ERRORS[code];
  return new ConsoleRefusal(row.status, code, message, paramOf(row), retry_after_s);
}

/**
 * Returns the refusal while the database is unavailable. Without it nobody can be signed in, so all of the
 * console fails.
 */
export function refusedWhileAway(): ConsoleRefusal {
  return refusedByPort(
    new Refusal('auth_unavailable', {
      message: 'The service is briefly unavailable: try again in a moment.',
    }),
  );
}

/** Returns the refusal that the API itself would give. */
export function refusedByPort(refusal: Refusal & Pick<ConsoleRefusal, 'is_client_gone'>): ConsoleRefusal {
  const { status, code, message, param, retry_after_s, reason, is_client_gone } = refusal;
  return new ConsoleRefusal(status, code, message, param, retry_after_s, reason, is_client_gone);
}

/** Returns the field of a row of the catalogue; null where it names none. */
function paramOf(row: ConsoleEntry): string | null {
  return row.param ?? null;
}
