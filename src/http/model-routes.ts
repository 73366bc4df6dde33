import { type KeyDirectory, SUSPENDED_MESSAGE } from '../accounts/key-directory.ts';
import { extractKey, MissingKey } from '../accounts/key-format.ts';
import { type Catalog, OWNED_BY } from '../catalog/catalog.ts';
import type { CatalogModel } from '../catalog/catalog-records.ts';
import type { Clock } from '../clock.ts';
import { type ErrorCode, Refusal } from '../errors.ts';
import type { RateWindows } from '../limits/rate-windows.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { Problems } from '../problems/problems.ts';
import type { RequestContext } from './context.ts';
import { refusalOverBudget, spendRefusal } from './refusal-gate.ts';
import { jsonResponse } from './responses.ts';
import { defineRoute, type Route } from './route.ts';
import { type ModelList, ModelListSchema } from './schemas.ts';

interface ModelServices {
  readonly keys: KeyDirectory;
  readonly catalog: Catalog;
  readonly limiter: RateWindows;
  readonly refusals: RefusalBudgets;
  readonly clock: Clock;
  readonly problems: Problems;
}

const MODEL_LIST_CODES = [
  'missing_api_key',
  'invalid_api_key',
  'rate_limit_exceeded',
  'auth_unavailable',
  'catalog_unavailable',
] as const satisfies readonly ErrorCode[];

/**
 * `GET /v1/models`: runs no model, and is neither billed nor limited. It does not touch a key's last-used time, and
 * looks at neither credit nor tier (contract: model list).
 */
export function modelListRoute(services: ModelServices): Route {
  return defineRoute({
    method: 'GET',
    path: '/v1/models',
    refusals: MODEL_LIST_CODES,
    operation: {
      summary: 'List the live models',
      tag: 'Models',
      success: {
        description: 'The models that can be asked now.',
        schemas: [{ name: 'ModelList', schema: ModelListSchema }],
      },
      asks_model: false,
    },
    handle: async (request, context) => {
      const key = extractKey(request.headers);
      const over_budget = await refusalOverBudget(services, key, context);
      if (over_budget !== null) return over_budget;
      const result = await listModels(services, context, key);
      if (!(result instanceof Refusal)) return jsonResponse(context.request_id, 200, result);
      spendRefusal(services, context, result);
      return { refusal: result };
    },
  });
}

async function listModels(
  services: Pick<ModelServices, 'keys' | 'catalog' | 'problems'>,
  { request_id }: RequestContext,
  key: string | MissingKey,
): Promise<ModelList | Refusal<(typeof MODEL_LIST_CODES)[number]>> {
  if (key instanceof MissingKey) return new Refusal('missing_api_key', { message: key.message });
  const failed = <Code extends 'auth_unavailable' | 'catalog_unavailable'>(
    step: 'authenticate' | 'catalog',
    code: Code,
    error: unknown,
  ) => {
    services.problems.report({ request_id, step, code, error });
    return new Refusal(code);
  };
  const caller = await orRefuse(
    () => services.keys.authenticate(key),
    (error) => failed('authenticate', 'auth_unavailable', error),
  );
  if (caller instanceof Refusal) return caller;
  if (caller === null) return new Refusal('invalid_api_key');
  if (caller.is_suspended === true) return new Refusal('invalid_api_key', { message: SUSPENDED_MESSAGE });
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
    models: modelsOf(live),
  };
}

/** The models as clients of the open decision-request format list them. */
export function modelsOf(live: readonly CatalogModel[]): ModelList['models'] {
  return live.map(({ id, description, released_at_ms }) => ({
    name: id,
    description,
    release_date: new Date(released_at_ms ?? 0).toISOString().slice(0, 10),
  }));
}

/** What `read` resolves with, or the refusal for a database that cannot be read. */
async function orRefuse<T, Code extends ErrorCode>(
  read: () => Promise<T>,
  refuse: (error: unknown) => Refusal<Code>,
): Promise<T | Refusal<Code>> {
  try {
    return await read();
  } catch (error) {
    return refuse(error);
  }
}
