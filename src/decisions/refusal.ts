import { type CommonCode, type ErrorCode, Refusal, type RefusalDetails } from '../errors.ts';

/** What a decision can be refused with, its body included, beside `COMMON_CODES`. */
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

  'model_unavailable',
  'model_warming_up',
  'auth_unavailable',
  'billing_unavailable',
  'catalog_unavailable',
] as const satisfies readonly ErrorCode[];

export type DecisionCode = (typeof DECISION_CODES)[number] | CommonCode;

/** Why a decision is refused. A step that gives a code that is not listed does not compile. */
export type DecisionRefusal = Refusal<DecisionCode>;

/** `Refusal`, for the codes of decisions only. */
export const DecisionRefusal: new <Code extends DecisionCode>(
  code: Code,
  details?: RefusalDetails,
) => Refusal<Code> = Refusal;
