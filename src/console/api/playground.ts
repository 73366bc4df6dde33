import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import {
  type DecisionResponse,
  DecisionResponseSchema,
  type TokenCount,
  TokenCountSchema,
} from '../../decisions/schemas.ts';
import { Refusal } from '../../errors/errors.ts';
import type { RequestContexts } from '../../http/context.ts';
import { answerDecision, headersOf } from '../../http/decision-routes.ts';
import { jsonResponse } from '../../http/responses.ts';
import { answerTokenCount } from '../../http/token-routes.ts';
import { refusedByPort } from './refusals.ts';
import { Id, OrganizationParams } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { requireKeyOf } from './within-organization.ts';

export type { DecisionResponse, TokenCount };

const PlaygroundParams = Type.Composite([OrganizationParams, Type.Object({ key_id: Id })]);

/**
 * Returns the playground's route: a decision with a key of the organization, named by its id. The body, the
 * response, its headers and the charge are those of `POST /v1/decisions`. The record is not stored.
 */
export function playgroundRoutes(services: ConsoleServices, contexts: RequestContexts) {
  return new Elysia({ prefix: '/organizations/:organization_id/playground' }).use(signedIn(services)).post(
    '/:key_id',
    async ({ actor, request, params }) => {
      const { key_id } = params;
      await requireKeyOf(services.store, actor, params, 'use_keys');
      const context = contexts.of(request);
      context.endpoint = '/console/playground';
      const asked = {
        endpoint: '/v1/decisions',
        default_model: null,
        key: { key_id },
        query_mode: null,
        openai: null,
      } as const;
      const { outcome } = await answerDecision(services.decisions, asked, request, context);
      const { result } = outcome;
      if (result instanceof Refusal) throw refusedByPort(result);
      return jsonResponse(context.request_id, 200, result, headersOf(outcome, context, services.clock));
    },
    {
      // The API reads a body after the key is known.
      parse: 'none',
      params: PlaygroundParams,
      // A copy, because Elysia writes into the schemas of its routes, and this one is in the OpenAPI document.
      response: { ...DecisionResponseSchema },
    },
  );
}

/**
 * The tokens and price of the same request, free of charge, as `POST /v1/tokens` tells them. The page asks while somebody
 * writes, so that it counts neither as a change nor against the key's budget of refusals, which its programs need.
 */
export function playgroundTokenRoutes(services: ConsoleServices, contexts: RequestContexts) {
  const { sign_in } = services;
  return new Elysia({ prefix: '/organizations/:organization_id/playground' })
    .use(signedIn(services, (session) => sign_in.countTokenCount(session)))
    .post(
      '/:key_id/tokens',
      async ({ actor, request, params }) => {
        const { key_id } = params;
        await requireKeyOf(services.store, actor, params, 'use_keys');
        const context = contexts.of(request);
        context.endpoint = '/console/playground/tokens';
        const asked = { endpoint: '/v1/tokens', key: { key_id }, query_mode: null, openai: null } as const;
        const { outcome } = await answerTokenCount(services.decisions, asked, request, context);
        const { result } = outcome;
        if (result instanceof Refusal) throw refusedByPort(result);
        return jsonResponse(context.request_id, 200, result);
      },
      { parse: 'none', params: PlaygroundParams, response: { ...TokenCountSchema } },
    );
}
