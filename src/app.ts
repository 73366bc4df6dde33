import { Elysia } from 'elysia';
import type { AccountContext } from './accounts/context.ts';
import type { DecisionServices } from './decisions/ports.ts';
import { ERRORS, Refusal } from './errors.ts';
import type { BodyLimits } from './http/body-bytes.ts';
import { RequestContexts } from './http/context.ts';
import { decisionRoutes } from './http/decision-routes.ts';
import { docsPages, docsScript, PAGE_HEADERS } from './http/docs.ts';
import { modelRoutes } from './http/model-routes.ts';
import { refusalOverAddressBudget, spendRefusal } from './http/refusal-gate.ts';
import { errorResponse, REQUEST_ID_HEADER } from './http/responses.ts';
import { allowOf, type KnownPath, knownPath } from './http/routes.ts';
import { webhookRoutes } from './http/webhook-routes.ts';
import type { Log } from './ops/log.ts';
import type { PaymentProvider } from './payments/provider.ts';

/** Everything that the HTTP interface needs. */
export interface AppServices extends DecisionServices {
  /** Whose webhooks are taken; null where credit is only given by hand. */
  readonly payments: { readonly context: AccountContext; readonly provider: PaymentProvider } | null;
  /** Whether the API reference is served at `/swagger`. */
  readonly api_reference: boolean;
  readonly log: Pick<Log, 'request' | 'error' | 'warn' | 'info'>;
  readonly body_limits: BodyLimits;
}

/** The service's HTTP interface with every route. No side effect: `server.ts` gives it a port. */
export function createApp(services: AppServices) {
  const contexts = new RequestContexts((client_address) => ({
    request_id: services.identifiers.id('request'),
    started_ms: services.clock.monotonic_ms(),
    client_address,
    caller: null,
    code: null,
    is_over_budget: false,
  }));

  const refuse = (request: Request, refusal: Refusal, headers: Readonly<Record<string, string>> = {}) => {
    const context = contexts.of(request);
    context.code = refusal.code;
    return errorResponse(context.request_id, refusal, headers);
  };

  /** A path that no route took: the wrong method of a known one, or nothing that the service has. */
  const unmatched = (request: Request): Response => {
    const path = knownPath(new URL(request.url).pathname);
    if (path !== null && !isAbsent(path)) {
      return refuseAddress(request, new Refusal('method_not_allowed'), { allow: allowOf(path) });
    }
    return refuseAddress(request, new Refusal('not_found'));
  };

  /** A refusal that no key was looked at for: it is counted by the client's address. */
  const refuseAddress = (request: Request, refusal: Refusal, headers = {}): Response => {
    const context = contexts.of(request);
    const over_budget = refusalOverAddressBudget(services, context);
    if (over_budget !== null) return over_budget;
    spendRefusal(services, context, refusal);
    return refuse(request, refusal, headers);
  };

  /** Whether this service does without the path: webhooks without a provider, a reference that is switched off. */
  const isAbsent = (path: KnownPath): boolean =>
    path === '/webhooks/paddle'
      ? services.payments === null
      : path.startsWith('/swagger') && !services.api_reference;

  // Elysia otherwise looks for the path behind the 11th character, where that of `http://tds/` has begun already.
  const app = new Elysia({ normalize: false, handler: { standardHostname: false } })
    .onRequest(({ request, set }) => {
      set.headers[REQUEST_ID_HEADER] = contexts.of(request).request_id;
      if (knownPath(new URL(request.url).pathname) === '/swagger') {
        Object.assign(set.headers, PAGE_HEADERS);
      }
      set.headers['x-content-type-options'] = 'nosniff';
    })
    .onError(({ code, error, request }) => {
      if (code === 'NOT_FOUND') return unmatched(request);
      const refusal = new Refusal('internal_error');
      const { request_id } = contexts.of(request);
      services.problems.report({ request_id, step: 'http', code: refusal.code, error });
      return refuse(request, refusal);
    })
    .onAfterResponse(({ request }) => {
      const context = contexts.of(request);
      if (context.is_over_budget) return;
      services.log.request({
        request_id: context.request_id,
        method: request.method,
        path: knownPath(new URL(request.url).pathname),
        // Every response that is no 200 has a code; Elysia tells of the responses of `onError` as of a 200.
        status: context.code === null ? 200 : ERRORS[context.code].status,
        duration_ms: services.clock.monotonic_ms() - context.started_ms,
        code: context.code,
        organization_id: context.caller?.organization_id ?? null,
        project_id: context.caller?.project_id ?? null,
        key_id: context.caller?.key_id ?? null,
      });
    })
    .use(decisionRoutes(services, contexts))
    .use(modelRoutes(services, contexts))
    .use(webhookRoutes(services, contexts))
    .use(services.api_reference ? docsScript() : new Elysia())
    .use(services.api_reference ? docsPages() : new Elysia());

  return {
    /** Answers one request of a client with that address. */
    handle(request: Request, client_address: string): Response | Promise<Response> {
      contexts.of(request, client_address);
      return app.handle(request);
    },
  };
}
