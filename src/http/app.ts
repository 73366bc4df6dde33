import { type ErrorCode, overloaded, Refusal } from '../errors/errors.ts';
import { drawHashKey } from '../hashing/half-siphash.ts';
import { AttemptBudgets } from '../limits/attempt-budgets.ts';
import { reported } from '../problems/problems.ts';
import type { KnownPath, RequestContext } from './context.ts';
import { PathTable } from './path-table.ts';
import { hasSpentAddressBudget, refusalOverAddressBudget, spendRefusal } from './refusal-gate.ts';
import type { OnKnown, RequestHandler } from './request-handler.ts';
import { PORT_REFUSAL_LINES, recordPortRefusal, recordRequest } from './request-records.ts';
import { errorResponse, REQUEST_ID_HEADER } from './responses.ts';
import { type Handler, type Refused, refusedResponse } from './route.ts';
import { type RouteServices, routesOf } from './routes.ts';

/** The parts that the HTTP interface needs. */
export interface AppServices extends RouteServices {
  /** The console, which answers everything under `/console`; null where this service has none. */
  readonly console: ConsolePort | null;
}

/** The part that answers the paths of the console. */
export interface ConsolePort {
  handle(request: Request, context: RequestContext): Promise<Response>;
  /**
   * Returns true if a request is answered even when its address has no budget left. Does not read the
   * database.
   */
  passesOverBudget(request: Request): Promise<boolean>;
}

/** The path of every console request in log lines and metrics, because the real paths name organizations. */
const CONSOLE: KnownPath = { path: '/console', headers: {}, request_id_copy: null, allow: null };

/** The first part of the path of every route that a client's SDK calls. */
const VERSION = '/v1';

/** The service's HTTP interface, without a port. */
export interface App extends RequestHandler {
  handle(request: Request, client_address?: string, onKnown?: OnKnown): Promise<Response>;
}

/** Creates the service's HTTP interface with every route. It opens no port: `server.ts` does. */
export function createApp(services: AppServices): App {
  const paths = new PathTable(routesOf(services));
  const { console, identifiers, problems } = services;
  const port_refusal_lines = new AttemptBudgets({ line: PORT_REFUSAL_LINES }, drawHashKey());
  return {
    async handle(request, client_address = '', onKnown = () => {}) {
      const url = new URL(request.url);
      const path = console !== null && isOfConsole(url) ? CONSOLE : paths.find(url.pathname);
      const context: RequestContext = {
        request_id: identifiers.id('request'),
        started_ms: services.clock.monotonic_ms(),
        url,
        path,
        client_address,
        onKnown,
        span: services.tracing.begin(request, path?.path ?? null),
        caller: null,
        refusal: null,
        is_over_budget: false,
      };
      const response =
        console !== null && path === CONSOLE
          ? await answerByConsole(services, console, request, context)
          : await answerByRoute(services, paths, request, context);
      addHeaders(response, context);
      if (!isUnlisted(context)) recordRequest(services, request, context, response.status);
      return response;
    },
    refuse(refusal, client_address) {
      const request_id = identifiers.id('request');
      recordPortRefusal(services, port_refusal_lines, request_id, refusal, client_address);
      return errorResponse(request_id, refusal);
    },
    report: (failure) => problems.report({ ...failure, step: 'http' }),
  };
}

/** Returns the response of the route of a path and method, or a refusal where there is none, or it fails. */
async function answerByRoute(
  services: AppServices,
  paths: PathTable,
  request: Request,
  context: RequestContext,
): Promise<Response> {
  const route = context.path === null ? undefined : paths.route(context.path, request.method);
  if (route === undefined) return refusedResponse(context, unmatched(services, paths, context));
  if (services.draining.signal.aborted && route.answers_while_draining !== true) {
    return refusedResponse(context, { refusal: overloaded('stopping') });
  }
  try {
    const response = await answer(route.handle, request, context);
    return request.method === 'HEAD' ? await withoutBody(response) : response;
  } catch (error) {
    const { request_id } = context;
    const refusal = reported(services.problems, { request_id, step: 'http', code: 'internal_error', error });
    return refusedResponse(context, { refusal });
  }
}

/** Returns the response of a route to one request. Rejects as the handler does. */
export async function answer(
  handle: Handler<ErrorCode>,
  request: Request,
  context: RequestContext,
): Promise<Response> {
  const result = await handle(request, context);
  return result instanceof Response ? result : refusedResponse(context, result);
}

/** Returns the response to a HEAD: that of the GET, with the length of its body in place of the body. */
async function withoutBody(response: Response): Promise<Response> {
  const { status, headers } = response;
  if (!headers.has('content-length')) {
    headers.set('content-length', String((await response.bytes()).byteLength));
  }
  return new Response(null, { status, headers });
}

/** Adds the headers of every response, and those of its path that it does not have. */
function addHeaders({ headers }: Response, { request_id, path }: RequestContext): void {
  headers.set(REQUEST_ID_HEADER, request_id);
  headers.set('x-content-type-options', 'nosniff');
  if (path !== null) {
    if (path.request_id_copy !== null) headers.set(path.request_id_copy, request_id);
    for (const [name, value] of Object.entries(path.headers))
      if (!headers.has(name)) headers.set(name, value);
  }
  // A cache in front may keep an answer that says nothing, and give it to clients without a key, or with another one.
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
}

/** Returns true if a path belongs to the console. */
function isOfConsole({ pathname }: URL): boolean {
  return pathname === CONSOLE.path || pathname.startsWith(`${CONSOLE.path}/`);
}

/**
 * Returns the console's response. Its refusals count against the budget of the client's address, as all
 * others do.
 */
async function answerByConsole(
  services: AppServices,
  console: ConsolePort,
  request: Request,
  context: RequestContext,
): Promise<Response> {
  const refused = await refusedBeforeConsole(services, console, request, context);
  const response =
    refused === null ? await console.handle(request, context) : refusedResponse(context, refused);
  if (refused === null && response.status >= 400 && response.status < 500) {
    services.refusals.spendOfAddress(context.client_address, services.clock.monotonic_ms());
  }
  return response;
}

/**
 * Returns the refusal of a request when the service is stopping or the address's budget is spent; else null.
 * Signed-in people pass, so that another program at their address cannot lock them out.
 */
async function refusedBeforeConsole(
  services: AppServices,
  console: ConsolePort,
  request: Request,
  context: RequestContext,
): Promise<Refused | null> {
  if (services.draining.signal.aborted) return { refusal: overloaded('stopping') };
  const is_spent = hasSpentAddressBudget(services, context);
  if (!is_spent || (await console.passesOverBudget(request))) return null;
  return refusalOverAddressBudget(services, context);
}

/**
 * Returns true for a response that the log and the metrics leave out. A refusal by the port itself is never
 * left out.
 */
function isUnlisted({ path, refusal }: RequestContext): boolean {
  return path?.is_unlisted === true && refusal === null;
}

/**
 * Returns the refusal of a request that no route matched: a wrong method, or an unknown path. It counts
 * against the client's address, because no key was looked up.
 */
function unmatched(services: AppServices, paths: PathTable, context: RequestContext): Refused {
  const over_budget = refusalOverAddressBudget(services, context);
  if (over_budget !== null) return over_budget;
  const allow = context.path?.allow ?? null;
  const refused: Refused =
    allow === null
      ? { refusal: notFound(paths, context.url.pathname) }
      : { refusal: new Refusal('method_not_allowed'), headers: { allow } };
  spendRefusal(services, context, refused.refusal);
  return refused;
}

/**
 * Returns the refusal of an unknown path. A base URL with /v1 or a slash too much, or without /v1, is the first mistake
 * with most SDKs, so the message names it.
 */
function notFound(paths: PathTable, pathname: string): Refusal<'not_found'> {
  const single = pathname.replaceAll(/\/{2,}/g, '/');
  const is_versioned = pathname.startsWith(`${VERSION}/`);
  const [advice, path] =
    single !== pathname
      ? ['has a slash too many', single]
      : is_versioned
        ? [`must not end with ${VERSION}`, pathname.slice(VERSION.length)]
        : [`must end with ${VERSION}`, `${VERSION}${pathname}`];
  const meant = paths.find(path);
  if (meant?.path.startsWith(`${VERSION}/`) !== true || meant.allow === null) return new Refusal('not_found');
  const message = `This path does not exist, but ${meant.path} does: the base URL of this client ${advice}.`;
  return new Refusal('not_found', { message });
}
