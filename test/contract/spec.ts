/** The contract's tables as the tests need them, copied from its document and from nowhere else. */

/**
 * "Status to type". Not every status is shown there: another 4xx is a client's mistake like the rest, and 500 is ours.
 */
export const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
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
};

/** Codes that this service adds, with their statuses; the contract does not show the code of 405. */
export const STATUS_OF_ADDED_CODE = {
  malformed_request: 400,
  method_not_allowed: 405,
  request_timeout: 408,
  invalid_idempotency_key: 400,
  idempotency_key_reused: 409,
  idempotency_key_in_use: 409,
  unsupported_encoding: 415,
  headers_too_large: 431,
  api_key_spend_limit: 429,
  internal_error: 500,
  overloaded: 503,
} as const;

/** "Codes", where `invalid_request` may be 400 or 422, and is 422 here; and those that this service adds. */
export const STATUS_OF_CODE = {
  ...STATUS_OF_ADDED_CODE,
  invalid_json: 400,
  missing_state: 400,
  missing_questions: 400,
  missing_model: 400,
  wrong_endpoint: 400,
  missing_api_key: 401,
  invalid_api_key: 401,
  insufficient_credit: 402,
  model_not_found: 404,
  not_found: 404,
  request_too_large: 413,
  too_many_questions: 422,
  invalid_question_type: 422,
  invalid_criteria: 422,
  invalid_mode: 422,
  invalid_request: 422,
  rate_limit_exceeded: 429,
  project_spend_limit: 429,
  model_unavailable: 502,
  model_warming_up: 503,
  auth_unavailable: 503,
  billing_unavailable: 503,
  catalog_unavailable: 503,
} as const;

export type Code = keyof typeof STATUS_OF_CODE;

/** "Rate limits": RPM, TPM, questions per request and the largest top-up in dollars, by tier. */
export const TIERS = [
  { tier: 1, rpm: 300, tpm: 300_000, questions: 32, top_up_dollars: 25 },
  { tier: 2, rpm: 700, tpm: 700_000, questions: 64, top_up_dollars: 100 },
  { tier: 3, rpm: 1_500, tpm: 1_500_000, questions: 64, top_up_dollars: 300 },
  { tier: 4, rpm: 2_500, tpm: 2_500_000, questions: 64, top_up_dollars: 500 },
  { tier: 5, rpm: 5_000, tpm: 5_000_000, questions: 64, top_up_dollars: 1_000 },
] as const;

/** "Response headers", less `x-request-id`, which is on every response. */
export const RATE_REQUEST_HEADERS = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
] as const;
export const MODEL_HEADERS = [
  'service-processing-ms',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  // An addition.
  'x-ratelimit-reset-tokens',
] as const;

/** "Limits": 1 MB. */
export const BODY_BYTES_MAX = 1_048_576;
