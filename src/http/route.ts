import type { TSchema } from '@sinclair/typebox';
import type { CommonCode, ErrorCode, Refusal } from '../errors/errors.ts';
import type { RequestContext } from './context.ts';
import { errorResponse } from './responses.ts';

/** The method of a route; a HEAD goes wherever a GET does. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A refusal, with the additional headers of its response. */
export interface Refused<Code extends ErrorCode = ErrorCode> {
  readonly refusal: Refusal<Code>;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Answers one request of a route. The context already has the request's id; the handler sets the caller once
 * it is known.
 */
export type Handler<Code extends ErrorCode> = (
  request: Request,
  context: RequestContext,
) => Response | Refused<Code> | Promise<Response | Refused<Code>>;

/** A schema under its name in the API reference. */
export interface NamedSchema {
  readonly name: string;
  readonly schema: TSchema;
}

/** A parameter of the path or the query, or a header. */
export interface Parameter {
  readonly name: string;
  readonly description: string;
  readonly schema: NamedSchema;
  /** A value with which the operation's examples work. */
  readonly example?: string;
}

/** Working values by name: a request, and under the same name its response. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

/** A body, of a request or a response: one of the schemas. */
export interface Described {
  readonly description: string;
  readonly schemas: readonly [NamedSchema, ...NamedSchema[]];
  readonly examples: Examples;
  /** JSON by default. */
  readonly media_type?: string;
}

/** The description of a route in the API reference, which adds the errors from the route's refusals. */
export interface Operation {
  readonly summary: string;
  readonly tag: string;
  /** The one parameter of the path. */
  readonly parameter?: Parameter;
  readonly query?: readonly Parameter[];
  /** Request headers beside those of authentication. */
  readonly headers?: readonly Parameter[];
  readonly body?: Described;
  readonly success: Described;
  /** True if requests reach the model: their responses have more headers (contract: response headers). */
  readonly asks_model: boolean;
  /** True if a 200 names the fields that nothing read; all that reached the model do. */
  readonly names_ignored_fields?: boolean;
}

/** One method of one path, with all its properties. */
export interface Route<Code extends ErrorCode = ErrorCode> {
  readonly method: Method;
  /** The path without a trailing slash. One segment may be a parameter, such as `{id}`. */
  readonly path: string;
  /** The codes of its refusals, besides `COMMON_CODES`. */
  readonly refusals: readonly Code[];
  /** Headers of every response of the path, whatever its result. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A second header with the request's id, on every response of the path. */
  readonly request_id_copy?: string;
  /** Leaves its responses out of log and metrics, because monitoring asks every few seconds. */
  readonly is_unlisted?: true;
  /** Null hides the route from the API reference. */
  readonly operation: Operation | null;
  /** Answers requests while the service is being stopped, for probes; all others are refused. */
  readonly answers_while_draining?: true;
  /** Null where this service does not have the route, so that its path does not exist. */
  readonly handle: Handler<NoInfer<Code> | CommonCode> | null;
}

/** A route that this service has. */
export type ServedRoute = Route & { readonly handle: Handler<ErrorCode> };

/** Returns the route unchanged; a handler with unlisted codes does not compile. */
export function defineRoute<const Code extends ErrorCode>(route: Route<Code>): Route {
  return route;
}

/** Returns the response to a refused request; the refusal goes into the log line of the request. */
export function refusedResponse(context: RequestContext, { refusal, headers }: Refused): Response {
  context.refusal = refusal;
  return errorResponse(context.request_id, refusal, headers);
}
