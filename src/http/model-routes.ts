import { Elysia } from 'elysia';
import type { KeyDirectory } from '../accounts/key-directory.ts';
import { extractKey } from '../accounts/key-format.ts';
import { type Catalog, OWNED_BY } from '../catalog/catalog.ts';
import type { CatalogModel } from '../catalog/catalog-records.ts';
import type { Clock } from '../clock.ts';
import { type ErrorCode, Refusal } from '../errors.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { Problems } from '../problems/problems.ts';
import type { RequestContext, RequestContexts } from './context.ts';
import { modelListOperation } from './operations.ts';
import { refusalOverBudget, spendRefusal } from './refusal-gate.ts';
import { errorResponse, jsonResponse } from './responses.ts';
import type { ModelList } from './schemas.ts';

/**
 * `GET /v1/models`: runs no model, is not billed or limited, does not touch a key's last-used time, and looks at
 * neither credit nor tier (spec).
 */
export function modelRoutes(
  services: {
    readonly keys: KeyDirectory;
    readonly catalog: Catalog;
    readonly limiter: RateLimiter;
    readonly refusals: RefusalBudgets;
    readonly clock: Clock;
    readonly problems: Problems;
  },
  contexts: RequestContexts,
) {
  return new Elysia({ name: 'models' }).get(
    '/v1/models',
    async ({ request }) => {
      const context = contexts.of(request);
      const key = extractKey(request.headers);
      const over_budget = await refusalOverBudget(services, key, context);
      if (over_budget !== null) return over_budget;
      const result = await listModels(services, context, key);
      if (!(result instanceof Refusal)) return jsonResponse(context.request_id, 200, result);
      context.code = result.code;
      spendRefusal(services, context, result);
      return errorResponse(context.request_id, result);
    },
    { detail: modelListOperation() },
  );
}

async function listModels(
  services: { readonly keys: KeyDirectory; readonly catalog: Catalog; readonly problems: Problems },
  { request_id }: RequestContext,
  key: string | null,
): Promise<ModelList | Refusal> {
  if (key === null) return new Refusal('missing_api_key');
  const failed = (step: 'authenticate' | 'catalog', code: ErrorCode, error: unknown) => {
    services.problems.report({ request_id, step, code, error });
    return new Refusal(code);
  };
  const caller = await orRefuse(
    () => services.keys.authenticate(key),
    (error) => failed('authenticate', 'auth_unavailable', error),
  );
  if (caller instanceof Refusal) return caller;
  if (caller === null) return new Refusal('invalid_api_key');
  const live = await orRefuse(
    () => services.catalog.listLive(),
    (error) => failed('catalog', 'catalog_unavailable', error),
  );
  return live instanceof Refusal ? live : listOf(live);
}

function listOf(live: readonly CatalogModel[]): ModelList {
  return {
    object: 'list',
    data: live.map(({ id, kind, status }) => ({ id, object: 'model', owned_by: OWNED_BY, kind, status })),
    models: live.map(({ id, description, released_at_ms }) => ({
      name: id,
      description,
      release_date: new Date(released_at_ms ?? 0).toISOString().slice(0, 10),
    })),
  };
}

/** What `read` resolves with, or the refusal for a database that cannot be read. */
async function orRefuse<T>(
  read: () => Promise<T>,
  refuse: (error: unknown) => Refusal,
): Promise<T | Refusal> {
  try {
    return await read();
  } catch (error) {
    return refuse(error);
  }
}
