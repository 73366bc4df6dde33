import { Elysia } from 'elysia';
import type { DecisionServices } from './decisions/services.ts';
import { Refusal } from './errors.ts';
import type { BodyLimits } from './http/body-bytes.ts';
import { RequestContexts } from './http/context.ts';
import { decisionRoutes } from './http/decision-routes.ts';
import { CONTENT_SECURITY_POLICY, docsPages, docsScript } from './http/docs.ts';
import { modelRoutes } from './http/model-routes.ts';
import { errorResponse, REQUEST_ID_HEADER } from './http/responses.ts';
import { allowOf, type KnownPath, knownPath } from './http/routes.ts';
import { webhookRoutes } from './http/webhook-routes.ts';
import type { Log } from './ops/log.ts';
import type { CreditContext } from './payments/credit.ts';
import type { PaymentProvider } from './payments/provider.ts';

/** Everything that the HTTP interface needs. */
export interface AppServices extends DecisionServices {
  /** Whose webhooks are taken; null where credit is only given by hand. */
  readonly payments: { readonly context: CreditContext; readonly provider: PaymentProvider } | null;
  readonly log: Pick<Log, 'request' | 'failure' | 'warn' | 'info'>;
  readonly body_limits: BodyLimits;
}

/** The service's HTTP interface with every route. No side effect: `server.ts` gives it a port. */
export function createApp(services: AppServices) {
  const contexts = new RequestContexts(() => ({
    request_id: services.identifiers.id('request'),
    started_ms: services.clock.monotonic_ms(),
    caller: null,
    code: null,
  }));

  const refuse = (request: Request, refusal: Refusal, headers: Readonly<Record<string, string>> = {}) => {
    const context = contexts.of(request);
    context.code = refusal.code;
    return errorResponse(context.request_id, refusal, headers);
  };

  /** A path that no route took: the wrong method of a known one, or nothing that the service has. */
  const unmatched = (request: Request): Response => {
    const path = knownPath(new URL(request.url).pathname);
    const is_absent = path === '/webhooks/paddle' && services.payments === null;
    if (path === null || is_absent) return refuse(request, new Refusal('not_found'));
    return wrongMethod(request, path);
  };

  const wrongMethod = (request: Request, path: KnownPath): Response => {
    const allow = { allow: allowOf(path) };
    if (request.method === 'OPTIONS') {
      const headers = { [REQUEST_ID_HEADER]: contexts.of(request).request_id, ...allow };
      return new Response(null, { status: 204, headers });
    }
    return refuse(request, new Refusal('method_not_allowed'), allow);
  };

  // Elysia otherwise looks for the path behind the 11th character, where that of `http://tds/` has begun already.
  return new Elysia({ normalize: false, handler: { standardHostname: false } })
    .onRequest(({ request, set }) => {
      set.headers[REQUEST_ID_HEADER] = contexts.of(request).request_id;
      if (knownPath(new URL(request.url).pathname) === '/swagger') {
        set.headers['content-security-policy'] = CONTENT_SECURITY_POLICY;
      }
      set.headers['x-content-type-options'] = 'nosniff';
    })
    .onError(({ code, error, request }) => {
      if (code === 'NOT_FOUND') return unmatched(request);
      services.log.failure(contexts.of(request).request_id, error);
      return refuse(request, new Refusal('internal_error'));
    })
    .onAfterResponse(({ request, responseValue }) => {
      const context = contexts.of(request);
      services.log.request({
        request_id: context.request_id,
        method: request.method,
        path: knownPath(new URL(request.url).pathname),
        status: responseValue instanceof Response ? responseValue.status : 200,
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
    .use(docsScript())
    .use(docsPages());
}
