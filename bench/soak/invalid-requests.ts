import { BODY_BYTES_MAX } from '../../src/http/body-bytes.ts';

/** An invalid request, and its refusal. */
export interface InvalidRequest {
  readonly status: number;
  readonly code: string;
  /** The key of the request; `none` and `unknown` are no valid keys. */
  readonly key: 'good' | 'none' | 'unknown' | 'unpaid' | 'spent';
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly body?: string;
}

const REFUND = { refund: { type: 'noul', instructions: 'Does the customer ask for money back?' } };
const RECORD = { model: 'decision-1', state: 'I was charged twice for order 8812.' };
const OPTIONS_TOO_MANY = Object.fromEntries(
  Array.from({ length: 256 }, (_, index) => [`option ${index}`, null]),
);
const QUESTIONS_TOO_MANY = Object.fromEntries(
  Array.from({ length: 65 }, (_, index) => [`question ${index}`, REFUND.refund]),
);

function decision(
  status: number,
  code: string,
  body: unknown,
  key: InvalidRequest['key'] = 'good',
): InvalidRequest {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, code, key, path: '/v1/decisions', method: 'POST', body: text };
}

/** Returns a body with an invalid question about the record. */
function asks(question: unknown): unknown {
  return { ...RECORD, questions: { asked: question } };
}

/** Every refusal that a client alone can cause. */
export const INVALID_REQUESTS: readonly InvalidRequest[] = [
  decision(400, 'invalid_json', '{"model": "decision-1", '),
  decision(400, 'invalid_json', ''),
  decision(400, 'missing_model', { state: 'A record.', questions: REFUND }),
  decision(400, 'missing_state', { model: 'decision-1', questions: REFUND }),
  decision(400, 'missing_questions', RECORD),
  decision(400, 'missing_questions', { ...RECORD, questions: [] }),
  decision(401, 'missing_api_key', { ...RECORD, questions: REFUND }, 'none'),
  decision(401, 'invalid_api_key', { ...RECORD, questions: REFUND }, 'unknown'),
  decision(402, 'insufficient_credit', { ...RECORD, questions: REFUND }, 'unpaid'),
  decision(404, 'model_not_found', { ...RECORD, model: 'chat-1', questions: REFUND }),
  { status: 404, code: 'not_found', key: 'good', path: '/v1/nothing', method: 'GET' },
  { status: 405, code: 'method_not_allowed', key: 'good', path: '/v1/decisions', method: 'GET' },
  decision(413, 'request_too_large', ' '.repeat(BODY_BYTES_MAX + 1)),
  decision(422, 'too_many_questions', { ...RECORD, questions: QUESTIONS_TOO_MANY }),
  decision(422, 'invalid_question_type', asks({ type: 'essay', instructions: 'Tell me more.' })),
  decision(422, 'invalid_question_type', asks('noul')),
  decision(
    422,
    'invalid_criteria',
    asks({ type: 'choice', instructions: 'Which?', criteria: { one: null } }),
  ),
  decision(
    422,
    'invalid_criteria',
    asks({ type: 'choice', instructions: 'Which?', criteria: OPTIONS_TOO_MANY }),
  ),
  decision(422, 'invalid_criteria', asks({ type: 'score', instructions: 'How much?', criteria: {} })),
  decision(422, 'invalid_mode', { ...RECORD, questions: REFUND, mode: 'slow' }),
  decision(422, 'invalid_request', asks({ type: 'noul', instructions: 'A refund?', criteria: 'yes or no' })),
  decision(429, 'project_spend_limit', { ...RECORD, questions: REFUND }, 'spent'),
];
