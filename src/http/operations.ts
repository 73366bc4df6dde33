import { ERRORS, type ErrorCode } from '../errors.ts';
import { NESTING_MAX } from '../json/read-json.ts';
import { ADDED_CODES, ADDITION, CODE_NOTES } from './specification-additions.ts';

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
  'malformed_request',
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
  'headers_too_large',
  'internal_error',
  'model_unavailable',
  'model_warming_up',
  'overloaded',
  'auth_unavailable',
  'billing_unavailable',
  'catalog_unavailable',
];

const MODEL_LIST_CODES: readonly ErrorCode[] = [
  'malformed_request',
  'missing_api_key',
  'invalid_api_key',
  'request_timeout',
  'rate_limit_exceeded',
  'headers_too_large',
  'internal_error',
  'overloaded',
  'auth_unavailable',
  'catalog_unavailable',
];

/** Either header works on every endpoint (spec, "Authentication"). */
const SECURITY = [{ bearer: [] }, { api_key: [] }];

const REQUEST_ID = { 'x-request-id': header('The id of the request; `request_id` of an error repeats it.') };

const REQUEST_RATE = {
  'x-ratelimit-limit-requests': header('Requests per minute of the organization.'),
  'x-ratelimit-remaining-requests': header('Requests left in the current 60 seconds, after this one.'),
  'x-ratelimit-reset-requests': header('Time until a request slot frees, in whole seconds: `<n>s`.'),
};

/** On every response that reached the model, successful or not. */
const RATE = {
  ...REQUEST_RATE,
  'x-ratelimit-limit-tokens': header('Input tokens per minute of the organization.'),
  'x-ratelimit-remaining-tokens': header('Input tokens left, counting this request at its estimated size.'),
  'service-processing-ms': header('Total platform time in milliseconds.'),
};

const RETRY_AFTER = { 'retry-after': header('Seconds to wait before the next try.') };

/** What the errors of the model list carry; decisions add what `RATE` has where the model was reached. */
const HEADERS_OF_STATUS: Readonly<Record<number, typeof REQUEST_RATE | typeof RETRY_AFTER>> = {
  429: { ...REQUEST_RATE, ...RETRY_AFTER },
  502: RETRY_AFTER,
  503: RETRY_AFTER,
};

/** What a request that reached the model can be refused with (spec, "Response headers"). */
const STATUSES_OF_THE_MODEL: readonly number[] = [422, 502, 503];

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
        description: 'The mode, at most once. A mode in the body wins, whatever is here.',
        schema: reference('Mode'),
      },
    ],
    requestBody: {
      required: true,
      description: `At most 1 MB of JSON in UTF-8, nested at most ${NESTING_MAX} levels deep. Unknown fields are ignored.`,
      content: json(operation.body),
    },
    responses: {
      200: {
        description: 'A probability for every option of every question.',
        headers: { ...REQUEST_ID, ...RATE },
        content: json('DecisionResponse'),
      },
      ...errorResponses(DECISION_CODES, RATE),
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
      ...errorResponses(MODEL_LIST_CODES, {}),
    },
  };
}

/**
 * One response a status, whose description lists the codes that it can carry, from the error catalogue. What has
 * reached the model carries `of_the_model` too.
 */
function errorResponses(codes: readonly ErrorCode[], of_the_model: Partial<typeof RATE>) {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.map(describe).join('\n\n'),
        headers: {
          ...REQUEST_ID,
          ...HEADERS_OF_STATUS[status],
          ...(STATUSES_OF_THE_MODEL.includes(status) ? of_the_model : {}),
        },
        content: json('Error'),
      },
    ]),
  );
}

function describe(code: ErrorCode): string {
  const sentences = [ERRORS[code].message, CODE_NOTES[code], ADDED_CODES.has(code) ? ADDITION : undefined];
  return `\`${code}\`: ${sentences.filter((sentence) => sentence !== undefined).join(' ')}`;
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
