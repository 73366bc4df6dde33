import { expect } from 'bun:test';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type DecisionResponse, DecisionResponseSchema } from '../../src/decisions/schemas.ts';
import { type Code, STATUS_OF_CODE, TYPE_OF_STATUS } from './spec.ts';

const ErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        type: Type.String(),
        code: Type.String(),
        message: Type.String({ minLength: 1 }),
        param: Type.Union([Type.String(), Type.Null()]),
      },
      { additionalProperties: false },
    ),
    request_id: Type.String({ pattern: '^req_' }),
  },
  { additionalProperties: false },
);
export type ErrorBody = Static<typeof ErrorBody>;

/** The headers of a response that the contract names, less `x-request-id`, in alphabetical order. */
export function platformHeaders(response: Response): string[] {
  return [...response.headers.keys()]
    .filter(
      (name) => name.startsWith('x-ratelimit-') || name === 'service-processing-ms' || name === 'retry-after',
    )
    .sort();
}

/**
 * The body of an error of that code, whose param must be `param`. Checks what the contract says of it: status, type,
 * shape, and the request id in header and body.
 */
export async function expectError(
  response: Response,
  code: Code,
  param: string | null = null,
): Promise<ErrorBody> {
  const body = await expectAnyError(response);
  expect({ status: response.status, code: body.error.code, param: body.error.param }).toEqual({
    status: STATUS_OF_CODE[code],
    code,
    param,
  });
  return body;
}

/** The body of an error of any code of the contract. */
export async function expectAnyError(response: Response): Promise<ErrorBody> {
  const body: unknown = await response.json();
  if (!Value.Check(ErrorBody, body))
    throw new Error(`not the one shape of an error: ${JSON.stringify(body).slice(0, 500)}`);
  expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
  expect(TYPE_OF_STATUS[response.status]).toBe(body.error.type);
  return body;
}

/** The body of a 200, after checking its shape and its request id. */
export async function expectDecision(response: Response): Promise<DecisionResponse> {
  const body: unknown = await response.json();
  if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(body).slice(0, 500)}`);
  const errors = [...Value.Errors(DecisionResponseSchema, body)];
  if (!Value.Check(DecisionResponseSchema, body))
    throw new Error(`not a decision: ${JSON.stringify(errors[0])}`);
  expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  return body;
}
