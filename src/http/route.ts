import type { TSchema } from '@sinclair/typebox';
import type { CommonCode, ErrorCode, Refusal } from '../errors.ts';
import type { RequestContext } from './context.ts';
import { errorResponse } from './responses.ts';

/** What a route takes; a HEAD goes wherever a GET does. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A refusal, with the headers that its response carries beside those of every error. */
export interface Refused<Code extends ErrorCode = ErrorCode> {
  readonly refusal: Refusal<Code>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers one request of a route. The context already has the request's id, and takes the caller once it is known. */
export type Handler<Code extends ErrorCode> = (
  request: Request,
  context: RequestContext,
) => Response | Refused<Code> | Promise<Response | Refused<Code>>;

/** A schema under its name in the API reference. */
export interface NamedSchema {
  readonly name: string;
  readonly schema: TSchema;
}

/** A parameter of the path or the query, or a header, that a request may have. */
export interface Parameter {
  readonly name: string;
  readonly description: string;
  readonly schema: NamedSchema;
  /** A value with which the operation's examples work. */
  readonly example?: string;
}

/** Values that work as they stand, by name: a request, and under the same name the answer to it. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

/** A body, of a request or a response: one of the schemas. */
interface Described {
  readonly description: string;
  readonly schemas: readonly [NamedSchema, ...NamedSchema[]];
  readonly examples: Examples;
}

/** What the API reference says of a route; it adds the errors from the route's refusals. */
export interface Operation {
  readonly summary: string;
  readonly tag: string;
  /** Of the path: its one parameter. */
  readonly parameter?: Parameter;
  readonly query?: readonly Parameter[];
  /** Request headers beside those of authentication. */
  readonly headers?: readonly Parameter[];
  readonly body?: Described;
  readonly success: Described;
  /** Whether requests reach the model, whose responses carry more headers (contract: response headers). */
  readonly asks_model: boolean;
}

/** One method of one path, with everything that the service knows of it. */
export interface Route<Code extends ErrorCode = ErrorCode> {
  readonly method: Method;
  /** Without a slash at its end. One segment may be a parameter, such as `{id}`. */
  readonly path: string;
  /** The codes that it can refuse with, beside `COMMON_CODES`. */
  readonly refusals: readonly Code[];
  /** Headers of every response of the path, whatever becomes of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A second header with the request's id, on every response of the path. */
  readonly request_id_copy?: string;
  /** Leaves its answers out of log and metrics: whoever looks after the service asks it every few seconds. */
  readonly is_unlisted?: true;
  /** Null hides the route from the API reference. */
  readonly operation: Operation | null;
  /** Whether requests are answered while the service is being stopped, as probes are; otherwise they are refused. */
  readonly answers_while_draining?: true;
  /** Null where this service does without the route, so that its path does not exist. */
  readonly handle: Handler<NoInfer<Code> | CommonCode> | null;
}

/** The route as it is given; its handler compiles only if it refuses with nothing but the codes that are listed. */
export function defineRoute<const Code extends ErrorCode>(route: Route<Code>): Route {
  return route;
}

/** The response of a route to one request. Rejects with what the handler throws. */
export async function answer(
  handle: Handler<ErrorCode>,
  request: Request,
  context: RequestContext,
): Promise<Response> {
  const result = await handle(request, context);
  return result instanceof Response ? result : refusedResponse(context, result);
}

/** The response to a request that is refused; its code goes into the log line of the request. */
export function refusedResponse(context: RequestContext, { refusal, headers }: Refused): Response {
  context.code = refusal.code;
  return errorResponse(context.request_id, refusal, headers);
}
