import { LEFT_OUT_HEADER } from '../contract/left-out-header.ts';
import { COMMON_CODES, ERROR_CODES, ERROR_TYPES, ERRORS, type ErrorCode } from '../errors/errors.ts';
import { referenceTo, sharedSchemas } from './openapi-schemas.ts';
import { isRetriedInVain, SHOULD_RETRY_HEADER } from './responses.ts';
import type { Described, Examples, NamedSchema, Operation, Route } from './route.ts';
import { type ErrorResponse, ErrorResponseSchema } from './schemas.ts';
import { ADDITION, CODE_NOTES, isAddedCode } from './specification-additions.ts';

/** Either header works on every shown route (contract: authentication). */
const SECURITY = [{ bearer: [] }, { api_key: [] }];

const ERROR: NamedSchema = { name: 'Error', schema: ErrorResponseSchema };

const REQUEST_ID = { 'x-request-id': header('The id of the request; `request_id` of an error repeats it.') };

const REQUEST_ID_COPY = header('A copy of `x-request-id`. An addition to the specification.');

const REQUEST_RATE = {
  'x-ratelimit-limit-requests': header('Requests per minute of the organization.'),
  'x-ratelimit-remaining-requests': header('Requests left in the current 60 seconds, after this one.'),
  'x-ratelimit-reset-requests': header('Time until a request slot frees, in whole seconds: `<n>s`.'),
};

const IGNORED_FIELDS = {
  'tds-ignored-fields': header(
    'Fields of the request, its questions and the criteria of a noul that nothing read: at most 8 names, percent-encoded, each cut at 64 characters. Absent where there are none. An addition to the specification.',
  ),
};

/** The headers of every response that reached the model, successful or not. */
const RATE = {
  ...REQUEST_RATE,
  'x-ratelimit-limit-tokens': header('Input tokens per minute of the organization.'),
  'x-ratelimit-remaining-tokens': header('Input tokens left, counting this request at its estimated size.'),
  'x-ratelimit-reset-tokens': header(
    'Time until the oldest tokens leave the window, in whole seconds: `<n>s`. An addition to the specification.',
  ),
  'service-processing-ms': header('Total platform time in milliseconds.'),
  ...IGNORED_FIELDS,
  [LEFT_OUT_HEADER]: header(
    'How many tokens of the middle of the record the question with the least room does not see. Absent where all see all of it, or an upstream does not say. An addition to the specification.',
  ),
};

/** The header of the answer to an earlier request with the same idempotency key. */
const REPLAYED = {
  'idempotent-replayed': header('`true` where the answer is that of an earlier request; absent otherwise.'),
};

const RETRY_AFTER = { 'retry-after': header('Seconds to wait before the next try.') };

const SHOULD_RETRY = {
  [SHOULD_RETRY_HEADER]: header(
    '`false` with a code that the same request gets again; absent otherwise. An addition to the specification.',
  ),
};

/** The headers of errors by status; those of `RATE` are added where the model was reached. */
const HEADERS_OF_STATUS: Readonly<Record<number, Readonly<Record<string, ReturnType<typeof header>>>>> = {
  409: { 'retry-after': header('Seconds to wait before the next try; with `idempotency_key_in_use` only.') },
  415: {
    'accept-encoding': header('The codings of a body that are taken. An addition to the specification.'),
  },
  429: { ...REQUEST_RATE, ...RETRY_AFTER },
  502: RETRY_AFTER,
  503: RETRY_AFTER,
};

/** The statuses of requests that reached the model (contract: response headers). */
const STATUSES_OF_THE_MODEL: readonly number[] = [200, 400, 422, 502, 503];

/** A route that the reference shows. */
type ShownRoute = Pick<Route, 'refusals' | 'request_id_copy'> & { readonly operation: Operation };

/** Returns the OpenAPI operation of a shown route. */
export function openApiOperation(route: ShownRoute) {
  const { body, success, ...operation } = route.operation;
  return {
    summary: operation.summary,
    tags: [operation.tag],
    security: SECURITY,
    ...parametersOf(operation),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            description: body.description,
            content: contentOf(body),
          },
        }),
    responses: {
      200: {
        description: success.description,
        headers: headersOf(200, [], route),
        content: contentOf(success),
      },
      ...errorResponses(route),
    },
  };
}

function parametersOf(operation: Pick<Operation, 'parameter' | 'query' | 'headers'>) {
  const { parameter, query = [], headers = [] } = operation;
  const listed = [
    ...(parameter === undefined ? [] : [{ ...parameter, in: 'path', required: true }]),
    ...query.map((given) => ({ ...given, in: 'query', required: false })),
    ...headers.map((given) => ({ ...given, in: 'header', required: false })),
  ];
  if (listed.length === 0) return {};
  return { parameters: listed.map(({ schema, ...given }) => ({ ...given, schema: reference(schema) })) };
}

/**
 * Returns the document's `components.schemas`: those of these operations, with their parts, and the error's.
 */
export function documentedSchemas(operations: readonly Operation[]) {
  return sharedSchemas([...operations.flatMap(schemasOf), ERROR]);
}

function schemasOf({
  parameter,
  query = [],
  headers = [],
  body,
  success,
}: Operation): readonly NamedSchema[] {
  const parameters = [...(parameter === undefined ? [] : [parameter]), ...query, ...headers].map(
    ({ schema }) => schema,
  );
  return [...(body?.schemas ?? []), ...success.schemas, ...parameters];
}

/** Returns one response for each status, whose description lists its codes, from the error catalogue. */
function errorResponses(route: ShownRoute) {
  const given = new Set<ErrorCode>([...COMMON_CODES, ...route.refusals]);
  const by_status = Map.groupBy(
    ERROR_CODES.filter((code) => given.has(code)).flatMap((code) =>
      statusesOf(code).map((status) => ({ code, status })),
    ),
    ({ status }) => status,
  );
  return Object.fromEntries(
    [...by_status].map(([status, codes]) => [
      status,
      {
        description: codes.map(({ code }) => describe(code)).join('\n\n'),
        headers: headersOf(
          status,
          codes.map(({ code }) => code),
          route,
        ),
        content: contentOf({
          schemas: [ERROR],
          examples: Object.fromEntries(codes.map(({ code }) => [code, errorExample(code, status)])),
        }),
      },
    ]),
  );
}

/** Returns the headers of the responses of a status, which have these codes. */
function headersOf(
  status: number,
  codes: readonly ErrorCode[],
  { operation: { asks_model, names_ignored_fields = false }, request_id_copy }: ShownRoute,
) {
  return {
    ...REQUEST_ID,
    ...(request_id_copy === undefined ? {} : { [request_id_copy]: REQUEST_ID_COPY }),
    ...HEADERS_OF_STATUS[status],
    ...(codes.some((code) => isRetriedInVain(code, status)) ? SHOULD_RETRY : {}),
    ...(names_ignored_fields && status === 200 ? IGNORED_FIELDS : {}),
    ...(asks_model && STATUSES_OF_THE_MODEL.includes(status) ? RATE : {}),
    ...(asks_model && status === 200 ? REPLAYED : {}),
  };
}

function statusesOf(code: ErrorCode): readonly (keyof typeof ERROR_TYPES)[] {
  const row = ERRORS[code];
  return 'other_status' in row ? [row.other_status, row.status] : [row.status];
}

function describe(code: ErrorCode): string {
  const sentences = [ERRORS[code].message, CODE_NOTES[code], isAddedCode(code) ? ADDITION : undefined];
  return `\`${code}\`: ${sentences.filter((sentence) => sentence !== undefined).join(' ')}`;
}

/** Returns an example of an error, with the general message. Its `param` is null; refusals of one field name it. */
function errorExample(code: ErrorCode, status: keyof typeof ERROR_TYPES): Examples[string] {
  const { message } = ERRORS[code];
  const value: ErrorResponse = {
    error: { type: ERROR_TYPES[status], code, message, param: null },
    request_id: 'req_6FqzT0mW1cXkJd8RbYvL2hNs',
  };
  return { summary: code, value };
}

function contentOf({ schemas, examples, media_type = 'application/json' }: Omit<Described, 'description'>) {
  const [schema, ...others] = schemas;
  const one = reference(schema);
  return {
    [media_type]: {
      schema: others.length === 0 ? one : { anyOf: [one, ...others.map(reference)] },
      examples,
    },
  };
}

function reference({ name }: NamedSchema) {
  return { $ref: referenceTo(name) };
}

function header(description: string) {
  return { description, schema: { type: 'string' as const } };
}
