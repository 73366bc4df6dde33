import { ERRORS, type ErrorCode, type Refusal } from '../errors/errors.ts';
import { type WritableJson, writeJson } from '../json/write-json.ts';
import type { RateStatus } from '../limits/rate-status.ts';
import type { ErrorResponse } from './schemas.ts';

/** The header of every response. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** The name under which the SDKs of the open format read the id. */
export const OPEN_FORMAT_REQUEST_ID_HEADER = 'x-typesafe-request-id';

/** Returns a response with a JSON body and the request's id. */
export function jsonResponse(
  request_id: string,
  status: number,
  body: WritableJson,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(writeJson(body), {
    status,
    headers: { 'content-type': 'application/json', [REQUEST_ID_HEADER]: request_id, ...headers },
  });
}

/** Tells SDKs not to retry a status that they retry otherwise; both of OpenAI's obey it. */
export const SHOULD_RETRY_HEADER = 'x-should-retry';

/** The statuses that clients retry whatever their code, of which some codes say that it is no use. */
const RETRIED_STATUSES: readonly number[] = [409, 429];

/** Returns true for an error that clients would retry for its status, and in vain. */
export function isRetriedInVain(code: ErrorCode, status: number): boolean {
  return RETRIED_STATUSES.includes(status) && ERRORS[code].retry !== 'later';
}

/**
 * Returns a response in the one shape of every error (contract: error object). It has `Retry-After` where the refusal
 * has a time, and says so where clients would retry in vain.
 */
export function errorResponse(
  request_id: string,
  refusal: Refusal,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const body: ErrorResponse = {
    error: { type: refusal.type, code: refusal.code, message: refusal.message, param: refusal.param },
    request_id,
  };
  const { code, status, retry_after_s } = refusal;
  const retry: Record<string, string> = {};
  if (retry_after_s !== null) retry['retry-after'] = String(retry_after_s);
  if (isRetriedInVain(code, status)) retry[SHOULD_RETRY_HEADER] = 'false';
  return jsonResponse(request_id, refusal.status, body, { ...retry, ...headers });
}

/** Returns the rate-limit headers about requests, the only ones of a 429 `rate_limit_exceeded`. */
export function requestRateHeaders(
  rate: Pick<RateStatus, 'limit_requests' | 'remaining_requests' | 'reset_requests_s'>,
): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(rate.limit_requests),
    'x-ratelimit-remaining-requests': String(rate.remaining_requests),
    'x-ratelimit-reset-requests': `${rate.reset_requests_s}s`,
  };
}

/** Returns all rate-limit headers, for a response that reached the model. */
export function rateHeaders(rate: RateStatus): Record<string, string> {
  return {
    ...requestRateHeaders(rate),
    'x-ratelimit-limit-tokens': String(rate.limit_tokens),
    'x-ratelimit-remaining-tokens': String(rate.remaining_tokens),
    'x-ratelimit-reset-tokens': `${rate.reset_tokens_s}s`,
  };
}
