import type { AskedCall } from '../decisions/call.ts';
import { countTokens, type TokenCountOutcome } from '../decisions/count-tokens.ts';
import { OpenAiTranslation } from '../decisions/openai/openai-shape.ts';
import { TOKEN_CODES, type TokenCode, tokenRefusal } from '../decisions/refusal.ts';
import { TokenCountSchema } from '../decisions/schemas.ts';
import { Refusal } from '../errors/errors.ts';
import type { RequestContext } from './context.ts';
import { DECISION_REQUESTS, TOKEN_ANSWERS } from './decision-examples.ts';
import {
  BODY_DESCRIPTION,
  bodyReading,
  DECISION_BODIES,
  type DecisionRouteServices,
  encodingHeaders,
  MODE_PARAMETER,
  noteAsked,
  queryMode,
  unreadHeaders,
} from './decision-routes.ts';
import { keyWithinBudget, spendRefusal, spendUnpaid } from './refusal-gate.ts';
import { jsonResponse } from './responses.ts';
import { defineRoute, type Refused, type Route } from './route.ts';

/**
 * Returns the route `POST /v1/tokens`, an addition to the specification: the tokens and the cost of a
 * request. It runs no model, is free of charge, and counts in no rate window. Each call counts as a refusal
 * of its key, because planning takes time as well.
 */
export function tokenRoute(services: DecisionRouteServices): Route {
  return defineRoute({
    method: 'POST',
    path: '/v1/tokens',
    refusals: TOKEN_CODES,
    operation: {
      summary: 'Count what a request would read and cost, free of charge',
      tag: 'Decisions',
      query: [MODE_PARAMETER],
      body: { description: BODY_DESCRIPTION, schemas: DECISION_BODIES, examples: DECISION_REQUESTS },
      success: {
        description: 'What the same body would read and cost as a decision.',
        schemas: [{ name: 'TokenCount', schema: TokenCountSchema }],
        examples: TOKEN_ANSWERS,
      },
      asks_model: false,
      names_ignored_fields: true,
    },
    handle: (request, context) => answer(services, request, context),
  });
}

async function answer(
  services: DecisionRouteServices,
  request: Request,
  context: RequestContext,
): Promise<Response | Refused<TokenCode>> {
  const key = await keyWithinBudget(services, request, context);
  if ('refusal' in key) return key;
  const openai = new OpenAiTranslation();
  const asked = { endpoint: '/v1/tokens', ...key, query_mode: queryMode(context), openai };
  const { outcome, body_bytes } = await answerTokenCount(services, asked, request, context);
  const { result, caller, ignored_fields } = outcome;
  if (result instanceof Refusal) {
    spendRefusal(services, context, result, body_bytes);
    const refusal = tokenRefusal(openai.refusal(result));
    return { refusal, headers: encodingHeaders(refusal) };
  }
  if (caller !== null) spendUnpaid(services, caller, { refusals: 1, body_bytes });
  return jsonResponse(
    context.request_id,
    200,
    result,
    unreadHeaders({ ignored_fields: openai.ignoredFields(ignored_fields) }),
  );
}

/**
 * Counts what a request would read and cost, and tells its context: for every route that counts. Never rejects for the
 * client's fault: the outcome has the refusal.
 */
export async function answerTokenCount(
  services: DecisionRouteServices,
  {
    openai,
    ...asked
  }: Pick<AskedCall, 'endpoint' | 'key' | 'caller' | 'query_mode'> & {
    readonly openai: OpenAiTranslation | null;
  },
  request: Request,
  context: RequestContext,
): Promise<{ readonly outcome: TokenCountOutcome; readonly body_bytes: number }> {
  const reading = bodyReading(services, request, context, openai);
  const outcome = await countTokens(services, {
    ...asked,
    ...reading,
    request_id: context.request_id,
    default_model: null,
    signal: request.signal,
    patience: null,
  });
  noteAsked(context, outcome);
  return { outcome, body_bytes: reading.body_bytes() };
}
