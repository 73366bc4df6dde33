import { Elysia } from 'elysia';
import { extractKey } from '../accounts/key-format.ts';
import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import type { Clock } from '../clock.ts';
import { type DecisionOutcome, decide } from '../decisions/decide.ts';
import type { DecisionServices } from '../decisions/ports.ts';
import { Refusal } from '../errors.ts';
import { readJsonBody } from './body.ts';
import type { BodyLimits } from './body-bytes.ts';
import type { RequestContext, RequestContexts } from './context.ts';
import { decisionOperation } from './operations.ts';
import { refusalOverBudget, spendRefusal } from './refusal-gate.ts';
import { errorResponse, jsonResponse, rateHeaders, requestRateHeaders } from './responses.ts';

/** `POST /v1/decisions` and `POST /v1/systemone`. */
export function decisionRoutes(
  services: DecisionServices & { readonly body_limits: BodyLimits },
  contexts: RequestContexts,
) {
  const answer = async (
    request: Request,
    endpoint: '/v1/decisions' | '/v1/systemone',
    default_model: string | null,
  ): Promise<Response> => {
    const context = contexts.of(request);
    const key = extractKey(request.headers);
    const over_budget = await refusalOverBudget(services, key, context);
    if (over_budget !== null) return over_budget;
    let body_bytes = 0;
    const outcome = await decide(services, {
      request_id: context.request_id,
      endpoint,
      default_model,
      key,
      query_mode: queryMode(new URL(request.url).searchParams),
      readBody: (organization_id) =>
        readJsonBody(request, organization_id, services.body_limits, (received_bytes) => {
          body_bytes = received_bytes;
        }),
      body_bytes: () => body_bytes,
      signal: request.signal,
    });
    context.caller = outcome.caller;
    if (outcome.result instanceof Refusal) spendRefusal(services, context, outcome.result, body_bytes);
    return respond(outcome, context, services.clock);
  };

  return new Elysia({ name: 'decisions' })
    .post('/v1/decisions', ({ request }) => answer(request, '/v1/decisions', null), {
      parse: 'none',
      detail: decisionOperation({
        summary: 'Decide typed questions about one record',
        body: 'DecisionRequest',
      }),
    })
    .post('/v1/systemone', ({ request }) => answer(request, '/v1/systemone', DEFAULT_MODEL), {
      parse: 'none',
      detail: decisionOperation({
        summary: 'The same, for clients of the open decision-request format',
        body: 'SystemOneRequest',
      }),
    });
}

/** The mode of a query; null when it has none. Several are no mode, equal or not: which one is meant is not guessed. */
function queryMode(query: URLSearchParams): string | null {
  const modes = query.getAll('mode');
  return modes.length === 0 ? null : modes.join(',');
}

/** Step 6: which headers go with which outcome is the spec's "Response headers". */
function respond(outcome: DecisionOutcome, context: RequestContext, clock: Clock): Response {
  const { result, rate } = outcome;
  const headers: Record<string, string> = {};
  if (rate !== null && outcome.reached_model) {
    const elapsed_ms = clock.monotonic_ms() - context.started_ms;
    Object.assign(headers, rateHeaders(rate), { 'service-processing-ms': elapsed_ms.toFixed(3) });
  }
  if (!(result instanceof Refusal)) return jsonResponse(context.request_id, 200, result, headers);
  context.code = result.code;
  if (rate !== null && result.code === 'rate_limit_exceeded')
    Object.assign(headers, requestRateHeaders(rate));
  return errorResponse(context.request_id, result, headers);
}
