import { ERRORS, type ErrorCode } from '../errors.ts';

/** Names of the schemas in the OpenAPI document; `docs.ts` puts the TypeBox schemas under them. */
export type SchemaName =
  | 'DecisionRequest'
  | 'SystemOneRequest'
  | 'DecisionResponse'
  | 'Mode'
  | 'ModelList'
  | 'Error';

/** The codes that a decision endpoint can answer with. */
const DECISION_CODES: readonly ErrorCode[] = [
  'invalid_json',
  'missing_model',
  'missing_state',
  'missing_questions',
  'wrong_endpoint',
  'missing_api_key',
  'invalid_api_key',
  'insufficient_credit',
  'model_not_found',
  'request_timeout',
  'request_too_large',
  'too_many_questions',
  'invalid_question_type',
  'invalid_criteria',
  'invalid_mode',
  'invalid_request',
  'rate_limit_exceeded',
  'project_spend_limit',
  'model_unavailable',
  'model_warming_up',
  'overloaded',
  'auth_unavailable',
  'billing_unavailable',
  'catalog_unavailable',
];

const MODEL_LIST_CODES: readonly ErrorCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'overloaded',
  'auth_unavailable',
  'catalog_unavailable',
];

/** Either header works on every endpoint (spec, "Authentication"). */
const SECURITY = [{ bearer: [] }, { api_key: [] }];

const REQUEST_ID = { 'x-request-id': header('The id of the request; `request_id` of an error repeats it.') };

const RATE = {
  'x-ratelimit-limit-requests': header('Requests per minute of the organization.'),
  'x-ratelimit-remaining-requests': header('Requests left in the current 60 seconds, after this one.'),
  'x-ratelimit-reset-requests': header('Time until a request slot frees, in whole seconds: `<n>s`.'),
  'x-ratelimit-limit-tokens': header('Input tokens per minute of the organization.'),
  'x-ratelimit-remaining-tokens': header('Input tokens left, counting this request at its estimated size.'),
  'service-processing-ms': header('Total platform time in milliseconds.'),
};

const RETRY_AFTER = { 'retry-after': header('Seconds to wait before the next try.') };

/** The OpenAPI operation of a decision endpoint. */
export function decisionOperation(operation: { readonly summary: string; readonly body: SchemaName }) {
  return {
    summary: operation.summary,
    tags: ['Decisions'],
    security: SECURITY,
    parameters: [
      {
        name: 'mode',
        in: 'query',
        required: false,
        description: 'The mode, when the body has none.',
        schema: reference('Mode'),
      },
    ],
    requestBody: {
      required: true,
      description: 'At most 1 MB of JSON.',
      content: json(operation.body),
    },
    responses: {
      200: {
        description: 'A probability for every option of every question.',
        headers: { ...REQUEST_ID, ...RATE },
        content: json('DecisionResponse'),
      },
      ...errorResponses(DECISION_CODES),
    },
  };
}

/** The OpenAPI operation of `GET /v1/models`. */
export function modelListOperation() {
  return {
    summary: 'List the live models',
    tags: ['Models'],
    security: SECURITY,
    responses: {
      200: {
        description: 'The models that can be asked now.',
        headers: REQUEST_ID,
        content: json('ModelList'),
      },
      ...errorResponses(MODEL_LIST_CODES),
    },
  };
}

/** One response a status, whose description lists the codes that it can carry, from the error catalogue. */
function errorResponses(codes: readonly ErrorCode[]) {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.map((code) => `\`${code}\`: ${ERRORS[code].message}`).join('\n\n'),
        headers:
          status === 429 || status === 502 || status === 503 ? { ...REQUEST_ID, ...RETRY_AFTER } : REQUEST_ID,
        content: json('Error'),
      },
    ]),
  );
}

function json(name: SchemaName) {
  return { 'application/json': { schema: reference(name) } };
}

function reference(name: SchemaName) {
  return { $ref: `#/components/schemas/${name}` };
}

function header(description: string) {
  return { description, schema: { type: 'string' as const } };
}
