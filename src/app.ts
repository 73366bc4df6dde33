import { Elysia } from 'elysia';
import { ERRORS, isErrorCode, Refusal } from './errors.ts';
import { type KnownPath, type RequestContext, RequestContexts } from './http/context.ts';
import { stopping } from './http/draining.ts';
import { elysiaPath, PathTable } from './http/path-table.ts';
import { hasSpentAddressBudget, refusalOverAddressBudget, spendRefusal } from './http/refusal-gate.ts';
import type { OnKnown } from './http/request-handler.ts';
import { logRequest, observeRequest } from './http/request-records.ts';
import { REQUEST_ID_HEADER } from './http/responses.ts';
import { answer, type Refused, refusedResponse } from './http/route.ts';
import { type RouteServices, routesOf } from './http/routes.ts';

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

/** Creates the service's HTTP interface with every route. It opens no port: `server.ts` does. */
export function createApp(services: AppServices) {
  const routes = routesOf(services);
  const paths = new PathTable(routes);
  const { console } = services;
  const pathOf = (pathname: string) =>
    console !== null && isOfConsole(pathname) ? CONSOLE : paths.find(pathname);
  const contexts = new RequestContexts((request, client_address, onKnown) => {
    const path = pathOf(new URL(request.url).pathname);
    return {
      request_id: services.identifiers.id('request'),
      started_ms: services.clock.monotonic_ms(),
      path,
      client_address,
      onKnown,
      span: services.tracing.begin(request, path?.path ?? null),
      caller: null,
      code: null,
      is_over_budget: false,
    };
  });

  // Elysia by default looks for the path after the 11th character, where the path of `http://tds/` has
  // already begun.
  const app = new Elysia({ normalize: false, handler: { standardHostname: false } })
    .onRequest(({ request, set }) => {
      const { request_id, path } = contexts.of(request);
      set.headers[REQUEST_ID_HEADER] = request_id;
      if (path !== null) Object.assign(set.headers, path.headers);
      if (path !== null && path.request_id_copy !== null) set.headers[path.request_id_copy] = request_id;
      set.headers['x-content-type-options'] = 'nosniff';
    })
    .onError(({ code, error, request }) => {
      const context = contexts.of(request);
      if (code === 'NOT_FOUND') return refusedResponse(context, unmatched(services, context));
      const refusal = new Refusal('internal_error');
      services.problems.report({ request_id: context.request_id, step: 'http', code: refusal.code, error });
      return refusedResponse(context, { refusal });
    })
    .onAfterResponse(({ request, responseValue }) => {
      const context = contexts.of(request);
      if (context.is_over_budget || isUnlisted(context)) return;
      // Elysia does not pass on the response that `onError` made.
      const { code } = context;
      const status = code !== null && isErrorCode(code) ? ERRORS[code].status : statusOf(responseValue);
      logRequest(services, request, context, status);
    });

  const { draining } = services;
  for (const { method, path, handle, answers_while_draining = false } of routes) {
    if (handle === null) continue;
    const handleUnlessDraining: typeof handle = (request, context) =>
      draining.has_begun && !answers_while_draining ? { refusal: stopping() } : handle(request, context);
    app.route(
      method,
      elysiaPath(path),
      ({ request }) => answer(handleUnlessDraining, request, contexts.of(request)),
      {
        parse: 'none',
      },
    );
  }

  return {
    /** Answers one request from that address. Calls `onKnown` once the client is known. */
    async handle(request: Request, client_address: string, onKnown: OnKnown = () => {}): Promise<Response> {
      const context = contexts.of(request, client_address, onKnown);
      const response =
        console !== null && context.path === CONSOLE
          ? await answerByConsole(services, console, request, context)
          : await app.handle(request);
      if (!isUnlisted(context)) observeRequest(services, context, response.status);
      return response;
    },
  };
}

/** Returns true if a path belongs to the console. */
function isOfConsole(pathname: string): boolean {
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
  response.headers.set(REQUEST_ID_HEADER, context.request_id);
  response.headers.set('x-content-type-options', 'nosniff');
  if (!context.is_over_budget) logRequest(services, request, context, response.status);
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
  if (services.draining.has_begun) return { refusal: stopping() };
  const is_spent = hasSpentAddressBudget(services, context);
  if (!is_spent || (await console.passesOverBudget(request))) return null;
  return refusalOverAddressBudget(services, context);
}

/**
 * Returns true for a response that the log and the metrics leave out. A refusal by the port itself is never
 * left out.
 */
function isUnlisted({ path, code }: RequestContext): boolean {
  return path?.is_unlisted === true && code === null;
}

function statusOf(response: unknown): number {
  return response instanceof Response ? response.status : 200;
}

/**
 * Returns the refusal of a request that no route matched: a wrong method, or an unknown path. It counts
 * against the client's address, because no key was looked up.
 */
function unmatched(services: AppServices, context: RequestContext): Refused {
  const over_budget = refusalOverAddressBudget(services, context);
  if (over_budget !== null) return over_budget;
  const allow = context.path?.allow ?? null;
  const refused: Refused =
    allow === null
      ? { refusal: new Refusal('not_found') }
      : { refusal: new Refusal('method_not_allowed'), headers: { allow } };
  spendRefusal(services, context, refused.refusal);
  return refused;
}
