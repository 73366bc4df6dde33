interface CatalogueEntry {
  readonly status: number;
  /** The second status that the contract allows for the code. */
  readonly other_status?: 400;
  /**
   * When the same request may be answered. `later`: what is in its way passes. `after_account_change`: its account needs
   * another key, credit or limit. `never`: the request itself is wrong.
   */
  readonly retry: 'later' | 'after_account_change' | 'never';
  /** The sentence for a refusal that has no more exact one. */
  readonly message: string;
  /** True for a code that the contract does not have. */
  readonly is_addition?: true;
}

/**
 * Every error of the API (contract: errors). The code, the reference and the tests read it; the reference
 * lists codes in this order. The console's errors follow below.
 */
export const ERRORS = {
  malformed_request: {
    status: 400,
    retry: 'never',
    message: 'What was sent is not a valid HTTP request.',
    is_addition: true,
  },
  invalid_json: { status: 400, retry: 'never', message: 'The request body is not valid JSON.' },
  invalid_idempotency_key: {
    status: 400,
    retry: 'never',
    message: 'An Idempotency-Key has 1 to 255 characters.',
    is_addition: true,
  },
  missing_model: {
    status: 400,
    retry: 'never',
    message: 'The request has no model: send the id of one, such as "decision-1".',
  },
  missing_state: {
    status: 400,
    retry: 'never',
    message: 'The request has no state: send the record as a string or a JSON object.',
  },
  missing_questions: {
    status: 400,
    retry: 'never',
    message:
      'The request has no questions: send an object from question id to question, with at least one entry.',
  },
  wrong_endpoint: { status: 400, retry: 'never', message: 'This model does not answer decisions.' },
  unreadable_webhook: {
    status: 400,
    retry: 'never',
    message: 'The webhook is signed, but no event that can be read.',
  },
  missing_api_key: {
    status: 401,
    retry: 'never',
    message: 'No API key found: send it as "Authorization: Bearer <API_KEY>" or "X-API-Key: <API_KEY>".',
  },
  invalid_api_key: {
    status: 401,
    retry: 'after_account_change',
    message: 'This API key does not exist, has expired or was revoked.',
  },
  invalid_signature: {
    status: 401,
    retry: 'never',
    message: 'The webhook is not signed by the payment provider.',
  },
  signature_outside_tolerance: {
    status: 401,
    retry: 'never',
    message: 'The webhook was signed more than 5 minutes ago or ahead: check the clock of the server.',
  },
  insufficient_credit: {
    status: 402,
    retry: 'after_account_change',
    message: 'The credit of the organization does not cover this request.',
  },
  model_not_found: { status: 404, retry: 'never', message: 'This model does not exist or is not open yet.' },
  not_found: { status: 404, retry: 'never', message: 'This path does not exist.' },
  method_not_allowed: {
    status: 405,
    retry: 'never',
    message: 'This path does not take this method.',
    is_addition: true,
  },
  request_timeout: {
    status: 408,
    retry: 'later',
    message: 'The request did not arrive in time.',
    is_addition: true,
  },
  idempotency_key_reused: {
    status: 409,
    retry: 'never',
    message: 'This Idempotency-Key came with another request before: send a new key with a new request.',
    is_addition: true,
  },
  idempotency_key_in_use: {
    status: 409,
    retry: 'later',
    message: 'A request with this Idempotency-Key is still being answered.',
    is_addition: true,
  },
  request_too_large: { status: 413, retry: 'never', message: 'The request body is larger than 1 MB.' },
  unsupported_encoding: {
    status: 415,
    retry: 'never',
    message: 'The Content-Encoding of a request is one of gzip, deflate, br and zstd, or there is none.',
    is_addition: true,
  },
  too_many_questions: {
    status: 422,
    retry: 'never',
    message: 'The request has more questions than the tier allows.',
  },
  invalid_question_type: {
    status: 422,
    retry: 'never',
    message: 'A question must be an object whose type is "noul", "choice" or "score".',
  },
  invalid_criteria: {
    status: 422,
    retry: 'never',
    message: 'A choice needs an object of 2 to 255 options, a score an array of 2 to 255 levels.',
  },
  invalid_mode: { status: 422, retry: 'never', message: 'The mode must be "fast" or "consistent".' },
  invalid_request: {
    status: 422,
    retry: 'never',
    other_status: 400,
    message: 'The model rejected the request.',
  },
  headers_too_large: {
    status: 431,
    retry: 'never',
    message: 'The headers of the request are larger than 16 kB.',
    is_addition: true,
  },
  rate_limit_exceeded: {
    status: 429,
    retry: 'later',
    message: 'The rate limit of the organization is reached.',
  },
  project_spend_limit: {
    status: 429,
    retry: 'after_account_change',
    message: 'The project has reached its monthly spend limit. It starts anew with the next UTC month.',
  },
  api_key_spend_limit: {
    status: 429,
    retry: 'after_account_change',
    message: 'The API key has reached its monthly spend limit. It starts anew with the next UTC month.',
    is_addition: true,
  },
  internal_error: {
    status: 500,
    retry: 'later',
    message: 'Something went wrong on our side.',
    is_addition: true,
  },
  model_unavailable: { status: 502, retry: 'later', message: 'The model could not answer.' },
  model_warming_up: { status: 503, retry: 'later', message: 'Consistent mode is still starting.' },
  overloaded: {
    status: 503,
    retry: 'later',
    message: 'Too many requests arrive at once.',
    is_addition: true,
  },
  auth_unavailable: { status: 503, retry: 'later', message: 'The key service is briefly unavailable.' },
  billing_unavailable: {
    status: 503,
    retry: 'later',
    message: 'The billing service is briefly unavailable.',
  },
  unresolved_payment: {
    status: 503,
    retry: 'later',
    message: 'The event belongs to no payment that is known yet: send it again.',
  },
  catalog_unavailable: { status: 503, retry: 'later', message: 'The model catalog is briefly unavailable.' },
} as const satisfies Record<string, CatalogueEntry>;

/** The stable identifier that clients branch on. */
export type ErrorCode = keyof typeof ERRORS;

/** Every code, in the catalogue's order. */
export const ERROR_CODES: readonly ErrorCode[] = Object.keys(ERRORS).filter(isErrorCode);

/** Returns true if a word is a code of the API's catalogue. */
export function isErrorCode(name: string): name is ErrorCode {
  return Object.hasOwn(ERRORS, name);
}

/** Returns when a request that got the code may be answered; null for a code that the API does not have. */
export function retryOf(code: string): CatalogueEntry['retry'] | null {
  return isErrorCode(code) ? ERRORS[code].retry : null;
}

/**
 * Everything that refuses with `overloaded`, by its word in the log: the sentence, and the `Retry-After` in seconds.
 */
export const OVERLOADS = {
  // A restarted service answers by then.
  stopping: { message: 'The service is being stopped: send the request again.', retry_after_s: 5 },
  requests_of_address: { message: 'This address has too many requests at once.', retry_after_s: 1 },
  // Most bodies arrive within a second.
  arriving_bodies: { message: 'Too many request bodies are arriving at once.', retry_after_s: 1 },
  connections: { message: 'Too many connections wait for their clients.', retry_after_s: 1 },
  waiting_bodies: {
    message: 'Too many large requests of the organization are waiting.',
    retry_after_s: 1,
  },
  batches: {
    message: 'Too many batches are being answered: send this one when another has ended.',
    retry_after_s: 30,
  },
  // It ended after 20 s.
  long_read: { message: 'This takes too long to add up: ask for fewer days.', retry_after_s: 30 },
  ended_batch: { message: 'The batch ended before this line was asked: send it again.', retry_after_s: 5 },
} as const satisfies Record<string, Pick<RefusalDetails, 'message' | 'retry_after_s'>>;

/** A word for what refused with `overloaded`. */
export type OverloadReason = keyof typeof OVERLOADS;

/** Returns the refusal for a reason. */
export function overloaded(reason: OverloadReason): Refusal<'overloaded'> {
  return new Refusal('overloaded', { ...OVERLOADS[reason], reason });
}

/** The codes that every route can answer with, because the HTTP port itself gives them. */
export const COMMON_CODES = [
  'malformed_request',
  'request_timeout',
  'headers_too_large',
  'internal_error',
  'overloaded',
] as const satisfies readonly ErrorCode[];

export type CommonCode = (typeof COMMON_CODES)[number];

/** The category of an error, fixed by its status. The contract does not show all of these statuses. */
export const ERROR_TYPES = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'insufficient_credit',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'invalid_request_error',
  409: 'invalid_request_error',
  413: 'invalid_request_error',
  415: 'invalid_request_error',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  431: 'invalid_request_error',
  500: 'api_error',
  502: 'api_error',
  503: 'overloaded_error',
} as const satisfies Record<(typeof ERRORS)[ErrorCode]['status'], string>;

/** An error of the console that the API does not have; `param` is the field, where there is exactly one. */
export interface ConsoleEntry {
  readonly status: ConsoleStatus;
  readonly message: string;
  readonly param?: string;
}

/** The errors of the rules of accounts and credit, in the console and at the command line. */
export const ACCOUNT_ERRORS = {
  not_found: { status: 404, message: 'There is nothing with this id or name.' },
  ambiguous_name: { status: 409, message: 'Several things have this name: use the id.' },
  permission_denied: { status: 403, message: 'Your role does not allow this.' },
  invalid_name: {
    status: 422,
    message: 'A name must have 1 to 100 characters and no control characters.',
    param: 'name',
  },
  invalid_email: { status: 422, message: 'This is not an email address.', param: 'email' },
  invalid_role: {
    status: 422,
    message: 'The first member of an organization must be an owner.',
    param: 'role',
  },
  invalid_amount: {
    status: 422,
    message: 'The amount must be a whole number of micro-dollars above zero.',
    param: 'amount',
  },
  invalid_limit: { status: 422, message: 'A limit must be a whole number in its range.' },
  name_taken: {
    status: 409,
    message: 'Another active project of the organization has this name.',
    param: 'name',
  },
  email_taken: { status: 409, message: 'Another user has this email address.', param: 'email' },
  already_member: { status: 409, message: 'This user is already a member of the organization.' },
  last_owner: { status: 409, message: 'An organization must keep at least one owner.' },
  too_many_invitations: {
    status: 409,
    message: 'The organization has 100 open invitations: revoke one first.',
  },
  invitation_ended: {
    status: 409,
    message: 'This invitation was used or revoked, or has expired: ask for a new one.',
  },
  wrong_address: {
    status: 403,
    message: 'This invitation is for another email address: sign in with that one.',
  },
  email_not_verified: { status: 403, message: 'Verify your email address first.' },
  organization_has_credit: {
    status: 409,
    message:
      'You are the only member of an organization that has credit or running requests: use it up, or hand it over first.',
  },
  too_many_organizations: { status: 409, message: 'You own 20 organizations: use one of them.' },
  too_many_projects: { status: 409, message: 'The organization has 100 active projects: archive one first.' },
  invalid_expiry: {
    status: 422,
    message: 'A key can expire at a time in the next ten years.',
    param: 'expires_at_ms',
  },
  key_ended: { status: 409, message: 'This API key was revoked or has expired.' },
  too_many_keys: { status: 409, message: 'The organization has 100 active API keys: revoke one first.' },
  invalid_model_name: {
    status: 422,
    message: 'A name has 1 to 60 letters, digits, ".", "_" and "-", and begins with a letter or a digit.',
    param: 'name',
  },
  model_name_taken: {
    status: 409,
    message: 'The organization has a model of this name: choose another name, or remove that model first.',
    param: 'name',
  },
  too_many_models: {
    status: 409,
    message: 'The organization has 10 models of its own: remove one first.',
  },
  credit_needed: {
    status: 402,
    message: 'An organization needs credit before it can have models of its own.',
  },
  unusable_tuning: {
    status: 422,
    message: 'The tuning belongs to no model that the organization can ask: evaluate and tune again.',
    param: 'tuning',
  },
  too_many_changes: {
    status: 429,
    message:
      'The organization has made 1,000 changes within a day: try again later. Keys, members and invitations can still be revoked.',
  },
  project_archived: { status: 409, message: 'The project is archived.' },
  top_up_out_of_range: {
    status: 422,
    message: 'The amount is outside of what the tier allows for one top-up.',
    param: 'amount',
  },
  too_many_pending_top_ups: {
    status: 409,
    message: 'The organization has 20 top-ups that are not paid: pay or cancel one first.',
  },
  refund_exceeds_paid: {
    status: 409,
    message: 'This is more than is left of the payments that can be refunded.',
  },
  entry_exists: {
    status: 409,
    message:
      'An entry with this id is in the books already, with another organization, kind or amount: look there first.',
  },
  payment_settled: { status: 409, message: 'The payment is already completed or canceled.' },
  event_resolved: {
    status: 409,
    message: 'The payment event was applied or decided already; one that waits can only be dismissed.',
  },
  event_not_assignable: {
    status: 409,
    message: 'The payment event cannot be assigned: dismiss it once you have looked at it.',
  },
  payment_provider_failed: {
    status: 502,
    message: 'The payment provider did not answer as expected: try again later.',
  },
} as const satisfies Record<string, ConsoleEntry>;

export type AccountErrorCode = keyof typeof ACCOUNT_ERRORS;

/** The errors of sign-in. No message tells if an account exists. */
export const SIGN_IN_ERRORS = {
  not_signed_in: { status: 401, message: 'Sign in first.' },
  wrong_credentials: { status: 401, message: 'The email address or the password is wrong.' },
  wrong_password: { status: 403, message: 'The password is wrong.' },
  email_not_verified: {
    status: 403,
    message: 'Verify your email address first: the link is in the mail that we sent.',
  },
  wrong_code: { status: 403, message: 'The code is wrong, or was used already.', param: 'code' },
  second_factor_ended: { status: 409, message: 'This sign-in has ended: enter your password again.' },
  no_second_factor: { status: 409, message: 'Two-step sign-in is off.' },
  second_factor_exists: { status: 409, message: 'Two-step sign-in is on already.' },
  wrong_passkey: {
    status: 403,
    message:
      'This passkey does not sign anybody in here: use your password, and see which passkeys you have.',
  },
  passkey_ended: { status: 409, message: 'The passkey was not used in time: try again.' },
  passkey_exists: { status: 409, message: 'This passkey was added already.' },
  too_many_passkeys: { status: 409, message: 'You have 20 passkeys: remove one first.' },
  no_passkeys_here: {
    status: 409,
    message: 'Passkeys need the console at its public address, with https.',
  },
  password_too_short: {
    status: 422,
    message: 'A password must have at least 10 characters.',
    param: 'password',
  },
  password_too_common: {
    status: 422,
    message: 'This password is one of the most common: choose another one.',
    param: 'password',
  },
  password_too_long: {
    status: 422,
    message: 'A password must have at most 128 characters.',
    param: 'password',
  },
  invitation_needed: {
    status: 403,
    message: 'This service takes new people by invitation only: open the link of your invitation.',
  },
  has_account: {
    status: 409,
    message: 'This email address has an account already: sign in, or set a new password.',
  },
  link_ended: { status: 409, message: 'This link was used, or has expired: ask for a new one.' },
  too_many_attempts: { status: 429, message: 'Too many attempts: try again later.' },
  too_busy: {
    status: 503,
    message: 'Too many people sign up or sign in at this moment: try again in a minute.',
  },
} as const satisfies Record<string, ConsoleEntry>;

export type SignInErrorCode = keyof typeof SIGN_IN_ERRORS;

/** The errors that only the console has. */
export const CONSOLE_ERRORS = {
  wrong_origin: { status: 403, message: "Changes are taken from the console's own pages only." },
  invalid_csrf_token: { status: 403, message: 'This page is no longer signed in: load it again.' },
  change_refused: { status: 409, message: 'This cannot be changed so.' },
  read_too_long: { status: 503, message: 'This takes too long to add up: choose a shorter time.' },
  unsupported_media_type: { status: 422, message: 'Send the request body as JSON.' },
} as const satisfies Record<string, ConsoleEntry>;

export type ConsoleErrorCode = keyof typeof CONSOLE_ERRORS;

/** Every code that a response of the API or the console can have. */
export type AnyErrorCode = ErrorCode | AccountErrorCode | SignInErrorCode | ConsoleErrorCode;

/** The category of an error of the console, which has 403, and conflicts of its own. */
export const CONSOLE_ERROR_TYPES = {
  ...ERROR_TYPES,
  403: 'permission_error',
  409: 'conflict_error',
} as const;

export type ConsoleStatus = keyof typeof CONSOLE_ERROR_TYPES;

/** The details of a refusal beyond its code. */
export interface RefusalDetails {
  /** A more exact sentence than the table's. It never quotes a record or a question. */
  readonly message?: string;
  /** The path of the field at fault, such as `questions.<id>.criteria`. */
  readonly param?: string;
  /** Whole seconds after which a retry makes sense. */
  readonly retry_after_s?: number;
  /** Replaces the code's usual status; its row of `ERRORS` must allow it. */
  readonly status?: 400;
  /** The reason for the log, of an `overloaded`. */
  readonly reason?: OverloadReason;
}

/**
 * The reason why a request gets no answer. Steps return it as a value, and only the HTTP layer makes a
 * response of it. Its type names its possible codes, so that a route cannot give one that it does not list.
 */
export class Refusal<Code extends ErrorCode = ErrorCode> {
  readonly message: string;
  readonly param: string | null;
  readonly retry_after_s: number | null;
  readonly status: (typeof ERRORS)[ErrorCode]['status'];
  readonly reason: OverloadReason | null;

  constructor(
    readonly code: Code,
    details: RefusalDetails = {},
  ) {
    this.message = details.message ?? ERRORS[code].message;
    this.param = details.param ?? null;
    this.retry_after_s = details.retry_after_s ?? null;
    this.status = details.status ?? ERRORS[code].status;
    this.reason = details.reason ?? null;
  }

  /** Returns the same refusal for the field with that path. */
  withParam(param: string): Refusal<Code> {
    const { code, message, reason, retry_after_s, status } = this;
    return new Refusal(code, {
      message,
      param,
      ...(retry_after_s === null ? {} : { retry_after_s }),
      ...(status === 400 ? { status } : {}),
      ...(reason === null ? {} : { reason }),
    });
  }

  get type(): (typeof ERROR_TYPES)[keyof typeof ERROR_TYPES] {
    return ERROR_TYPES[this.status];
  }
}
