import { type CommonCode, type ErrorCode, Refusal, type RefusalDetails } from '../errors/errors.ts';

/** The codes of decisions and their bodies, besides `COMMON_CODES`. */
export const DECISION_CODES = [
  'invalid_json',
  'invalid_idempotency_key',
  'missing_model',
  'missing_state',
  'missing_questions',
  'wrong_endpoint',
  'missing_api_key',
  'invalid_api_key',
  'insufficient_credit',
  'model_not_found',
  'idempotency_key_reused',
  'idempotency_key_in_use',
  'request_too_large',
  'unsupported_encoding',
  'too_many_questions',
  'invalid_question_type',
  'invalid_criteria',
  'invalid_mode',
  'invalid_request',
  'rate_limit_exceeded',
  'project_spend_limit',
  'api_key_spend_limit',
  'model_unavailable',
  'model_warming_up',
  'auth_unavailable',
  'billing_unavailable',
  'catalog_unavailable',
] as const satisfies readonly ErrorCode[];

/** The codes of requests that have been counted, or need credit. */
const COUNTED_CODES = [
  'invalid_idempotency_key',
  'idempotency_key_reused',
  'idempotency_key_in_use',
  'project_spend_limit',
  'api_key_spend_limit',
  'billing_unavailable',
] as const satisfies readonly (typeof DECISION_CODES)[number][];

/** The codes of token counts, besides `COMMON_CODES`. */
export const TOKEN_CODES = DECISION_CODES.filter(isTokenCode);
export type TokenCode = Exclude<DecisionCode, (typeof COUNTED_CODES)[number]>;

function isTokenCode<Code extends DecisionCode>(
  code: Code,
): code is Exclude<Code, (typeof COUNTED_CODES)[number]> {
  return !COUNTED_CODES.some((counted) => counted === code);
}

/** Returns the refusal as one of a count. Throws RangeError for one that only a decision can have. */
export function tokenRefusal(refusal: DecisionRefusal): Refusal<TokenCode> {
  if (isTokenRefusal(refusal)) return refusal;
  throw new RangeError(`counting tokens was refused with ${refusal.code}`);
}

function isTokenRefusal(refusal: DecisionRefusal): refusal is Refusal<TokenCode> {
  return isTokenCode(refusal.code);
}

export type DecisionCode = (typeof DECISION_CODES)[number] | CommonCode;

/** The refusal of a decision. A step with an unlisted code does not compile. */
export type DecisionRefusal = Refusal<DecisionCode>;

/** `Refusal`, restricted to the codes of decisions. */
export const DecisionRefusal: new <Code extends DecisionCode>(
  code: Code,
  details?: RefusalDetails,
) => Refusal<Code> = Refusal;
