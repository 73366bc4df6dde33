import type { AccountErrorCode } from '../../accounts/errors.ts';
import type { CatalogChangeRefused } from '../../catalog/changes.ts';
import { ERROR_TYPES, type ErrorCode, Refusal } from '../../errors.ts';
import type { SignInError, SignInErrorCode } from '../people/errors.ts';

/** Statuses that only the console gives, with their category (contract: error object). */
const CONSOLE_TYPES = { ...ERROR_TYPES, 403: 'permission_error', 409: 'conflict_error' } as const;

export type ConsoleStatus = keyof typeof CONSOLE_TYPES;

/** With which status the console answers what a rule refuses; its sentence stands in `src/accounts/errors.ts`. */
const ACCOUNT_STATUS = {
  not_found: 404,
  ambiguous_name: 409,
  permission_denied: 403,
  invalid_name: 422,
  invalid_email: 422,
  invalid_role: 422,
  invalid_amount: 422,
  invalid_limit: 422,
  name_taken: 409,
  email_taken: 409,
  already_member: 409,
  last_owner: 409,
  too_many_invitations: 409,
  invitation_ended: 409,
  wrong_address: 403,
  email_not_verified: 403,
  organization_has_credit: 409,
  too_many_organizations: 409,
  too_many_projects: 409,
  too_many_keys: 409,
  too_many_changes: 429,
  project_archived: 409,
  top_up_out_of_range: 422,
  too_many_pending_top_ups: 409,
  refund_exceeds_paid: 409,
  entry_exists: 409,
  payment_settled: 409,
  event_resolved: 409,
  event_not_assignable: 409,
  payment_provider_failed: 502,
} as const satisfies Record<AccountErrorCode, ConsoleStatus>;

/** Which field of the request a refusal is about, where there is exactly one. */
const ACCOUNT_PARAM: Partial<Record<AccountErrorCode, string>> = {
  invalid_name: 'name',
  invalid_email: 'email',
  invalid_role: 'role',
  invalid_amount: 'amount',
  name_taken: 'name',
  email_taken: 'email',
  top_up_out_of_range: 'amount',
};

/** The same for what sign-in refuses; its sentences stand in `src/console/people/errors.ts`. */
const SIGN_IN_STATUS = {
  not_signed_in: 401,
  wrong_credentials: 401,
  wrong_password: 403,
  email_not_verified: 403,
  password_too_short: 422,
  password_too_long: 422,
  invitation_needed: 403,
  link_ended: 409,
  too_many_attempts: 429,
  too_busy: 503,
} as const satisfies Record<SignInErrorCode, ConsoleStatus>;

/** What only the console refuses, beside what every port of the service does. */
const CONSOLE_ERRORS = {
  wrong_origin: { status: 403, message: "Changes are taken from the console's own pages only." },
  invalid_csrf_token: { status: 403, message: 'This page is no longer signed in: load it again.' },
  change_refused: { status: 409, message: 'This cannot be changed so.' },
  read_too_long: { status: 503, message: 'This takes too long to add up: choose a shorter time.' },
  unsupported_media_type: { status: 422, message: 'Send the request body as JSON.' },
} as const satisfies Record<string, { readonly status: ConsoleStatus; readonly message: string }>;

export type ConsoleErrorCode = keyof typeof CONSOLE_ERRORS;

/** A refusal as the console answers it: every field of the contract's error object, and the response's status. */
export class ConsoleRefusal extends Error {
  override readonly name = 'ConsoleRefusal';

  constructor(
    readonly status: ConsoleStatus,
    readonly code: ConsoleErrorCode | AccountErrorCode | SignInErrorCode | ErrorCode,
    message: string,
    readonly param: string | null = null,
    readonly retry_after_s: number | null = null,
  ) {
    super(message);
  }

  get type(): string {
    return CONSOLE_TYPES[this.status];
  }
}

/** A refusal of the console itself. */
export function refused(code: ConsoleErrorCode): ConsoleRefusal {
  const { status, message } = CONSOLE_ERRORS[code];
  return new ConsoleRefusal(status, code, message);
}

/** The refusal of a change of the catalog, whose sentence says why. */
export function refusedChange({ message }: CatalogChangeRefused): ConsoleRefusal {
  return new ConsoleRefusal(CONSOLE_ERRORS.change_refused.status, 'change_refused', message);
}

/** The refusal of input whose schema is right and whose meaning is not. */
export function refusedInput(param: string, message: string): ConsoleRefusal {
  return new ConsoleRefusal(422, 'invalid_request', message, param);
}

/** The refusal for what a rule refused; `param` where the route calls the field otherwise than the rule. */
export function refusedByRule(
  { code, message }: { readonly code: AccountErrorCode; readonly message: string },
  param: string | null = ACCOUNT_PARAM[code] ?? null,
): ConsoleRefusal {
  return new ConsoleRefusal(ACCOUNT_STATUS[code], code, message, param);
}

/** The refusal for what sign-in refused. */
export function refusedBySignIn({ code, message, retry_after_s }: SignInError): ConsoleRefusal {
  const param = code === 'password_too_short' || code === 'password_too_long' ? 'password' : null;
  return new ConsoleRefusal(SIGN_IN_STATUS[code], code, message, param, retry_after_s);
}

/** The refusal while the database is away: nothing of the console works without it, as nobody can be signed in. */
export function refusedWhileAway(): ConsoleRefusal {
  return refusedByPort(
    new Refusal('auth_unavailable', {
      message: 'The service is briefly unavailable: try again in a moment.',
    }),
  );
}

/** The refusal that the API itself would give. */
export function refusedByPort({ status, code, message, param, retry_after_s }: Refusal): ConsoleRefusal {
  return new ConsoleRefusal(status, code, message, param, retry_after_s);
}
