import { Type } from '@sinclair/typebox';
import type { Caller } from '../accounts/key-directory.ts';
import { DEFAULT_MODEL, OWNED_BY } from '../catalog/catalog.ts';
import { dollarsOf } from '../contract/money.ts';
import type { TierLimits } from '../contract/tiers.ts';
import type { AskedKey } from '../decisions/call.ts';
import { callerOf } from '../decisions/check-request.ts';
import { modelNotFound } from '../decisions/explained-refusals.ts';
import type { DecisionServices } from '../decisions/ports.ts';
import { type ErrorCode, Refusal } from '../errors/errors.ts';
import type { WritableJson } from '../json/write-json.ts';
import { reported } from '../problems/problems.ts';
import { MODES } from '../questions/question.ts';
import { OPTIONS_MAX } from '../questions/question-fields.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import { MS_PER_S } from '../time/clock.ts';
import { BODY_BYTES_MAX } from './body-bytes.ts';
import type { RequestContext } from './context.ts';
import { MODEL_EXAMPLES, MODEL_LIST_EXAMPLES } from './model-examples.ts';
import { pathParameter } from './path-table.ts';
import { keyWithinBudget, type RefusalGateServices, spendRefusal } from './refusal-gate.ts';
import { jsonResponse, OPEN_FORMAT_REQUEST_ID_HEADER } from './responses.ts';
import { defineRoute, type Refused, type Route } from './route.ts';
import { type ListedModel, type ModelList, ModelListSchema, ModelSchema } from './schemas.ts';

type ModelServices = RefusalGateServices & Pick<DecisionServices, 'keys' | 'catalog'>;

const MODEL_LIST_CODES = [
  'missing_api_key',
  'invalid_api_key',
  'rate_limit_exceeded',
  'auth_unavailable',
  'catalog_unavailable',
] as const satisfies readonly ErrorCode[];

const MODEL_CODES = [...MODEL_LIST_CODES, 'model_not_found'] as const satisfies readonly ErrorCode[];

type ModelCode = (typeof MODEL_CODES)[number];

const MODEL_PATH = '/v1/models/{id}';

/**
 * Returns the routes `GET /v1/models` and `GET /v1/models/{id}`. They run no model, and are neither billed
 * nor limited. They do not change a key's last-used time, and check neither credit nor tier (contract: model
 * list).
 */
export function modelRoutes(services: ModelServices): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/v1/models',
      request_id_copy: OPEN_FORMAT_REQUEST_ID_HEADER,
      refusals: MODEL_LIST_CODES,
      operation: {
        summary: 'List the live models',
        tag: 'Models',
        success: {
          description: 'The models that can be asked now.',
          schemas: [{ name: 'ModelList', schema: ModelListSchema }],
          examples: MODEL_LIST_EXAMPLES,
        },
        asks_model: false,
      },
      handle: (request, context) => answer<never>(services, request, context, listOf),
    }),
    defineRoute({
      method: 'GET',
      path: MODEL_PATH,
      refusals: MODEL_CODES,
      operation: {
        summary: 'Show one live model',
        tag: 'Models',
        parameter: {
          name: 'id',
          description: 'The id of a model, or an alias of one. An addition to the specification.',
          schema: { name: 'ModelId', schema: Type.String({ minLength: 1 }) },
          example: DEFAULT_MODEL,
        },
        success: {
          description: 'The model as the list has it.',
          schemas: [{ name: 'Model', schema: ModelSchema }],
          examples: MODEL_EXAMPLES,
        },
        asks_model: false,
      },
      handle: (request, context) =>
        answer(services, request, context, async (live, { limits, organization_id }) => {
          const name = pathParameter(MODEL_PATH, request);
          const model = name === null ? undefined : await services.catalog.findLive(name, organization_id);
          return model === undefined ? modelNotFound(live) : listedModel(model, limits);
        }),
    }),
  ];
}

/** Answers a client with a valid key with the result of `show` for the live models. */
async function answer<Code extends ModelCode>(
  services: ModelServices,
  request: Request,
  context: RequestContext,
  show: Show<Code>,
): Promise<Response | Refused<Code | (typeof MODEL_LIST_CODES)[number]>> {
  const key = await keyWithinBudget(services, request, context);
  if ('refusal' in key) return key;
  const result = await showModels(services, context, key, show);
  if (!(result instanceof Refusal)) return jsonResponse(context.request_id, 200, result);
  spendRefusal(services, context, result);
  return { refusal: result };
}

/** Returns the response about the live models for an organization with these limits. May read the catalog. */
type Show<Code extends ModelCode> = (
  live: readonly CatalogModel[],
  caller: Pick<Caller, 'limits' | 'organization_id'>,
) => WritableJson | Refusal<Code> | Promise<WritableJson | Refusal<Code>>;

async function showModels<Code extends ModelCode>(
  services: Pick<ModelServices, 'keys' | 'catalog' | 'problems'>,
  context: RequestContext,
  key: AskedKey,
  show: Show<Code>,
): Promise<WritableJson | Refusal<Code | (typeof MODEL_LIST_CODES)[number]>> {
  const { request_id } = context;
  const caller = await callerOf(services, { ...key, request_id });
  if (caller instanceof Refusal) return caller;
  context.caller = caller;
  try {
    return await show(await services.catalog.listLive(caller.organization_id), caller);
  } catch (error) {
    return reported(services.problems, { request_id, step: 'catalog', code: 'catalog_unavailable', error });
  }
}

function listOf(live: readonly CatalogModel[], { limits }: Pick<Caller, 'limits'>): ModelList {
  return {
    object: 'list',
    data: live.map((model) => listedModel(model, limits)),
    models: modelsOf(live),
  };
}

/** Returns a model with its limits and prices, for an organization with these limits. */
function listedModel(model: CatalogModel, limits: TierLimits | null): ListedModel {
  const { id, kind, status, context_tokens, input_price_micros_per_million_tokens: input } = model;
  return {
    id,
    object: 'model',
    created: Math.floor(releasedAt_ms(model) / MS_PER_S),
    owned_by: OWNED_BY,
    kind,
    status,
    context_tokens,
    price: { input: input === null ? null : dollarsOf(input), output: 0 },
    modes: kind === 'decision' ? [...MODES] : [],
    limits: {
      requests_per_minute: limits?.requests_per_minute ?? null,
      tokens_per_minute: limits?.tokens_per_minute ?? null,
      questions_per_request: limits?.questions_per_request ?? null,
      options_per_question: OPTIONS_MAX,
      body_bytes: BODY_BYTES_MAX,
    },
  };
}

/** Returns the models in the list of the open decision-request format. */
export function modelsOf(live: readonly CatalogModel[]): ModelList['models'] {
  return live.map((model) => ({
    name: model.id,
    description: model.description,
    release_date: new Date(releasedAt_ms(model)).toISOString().slice(0, 10),
  }));
}

function releasedAt_ms({ released_at_ms }: Pick<CatalogModel, 'released_at_ms'>): number {
  return released_at_ms ?? 0;
}
