import { MICROS_PER_DOLLAR } from '../money.ts';
import {
  type CatalogModel,
  type CatalogRecords,
  EMBEDDED,
  type ModelAlias,
  type ModelWeights,
  type UpstreamPool,
} from './catalog-records.ts';

interface LiveModel {
  readonly id: string;
  /** The most positions of a plan, or the most tokens that an upstream reads of a record with a question. */
  readonly context_tokens: number;
  readonly input_price_micros_per_million_tokens: number;
}

/** A live decision model with an engine in this process. */
export interface DecisionModelEntry extends LiveModel, ModelWeights {}

/** A live decision model with upstreams. */
export interface UpstreamModelEntry extends LiveModel {
  readonly upstreams: UpstreamPool;
}

/** A live decision model, with its source of answers and its price. */
export type ServedModelEntry = DecisionModelEntry | UpstreamModelEntry;

/** The model of a request to `/v1/systemone` that names none. */
export const DEFAULT_MODEL = 'decision-1';

/** The label of `owned_by` in the model list. */
export const OWNED_BY = 'tds';

/** The default descriptions in the model list, by kind. */
export const DESCRIPTIONS: Readonly<Record<CatalogModel['kind'], string>> = {
  decision: 'Answers typed questions about one record with a probability for every option.',
  chat: 'A language model that is coming soon.',
};

const NO_WEIGHTS = { weights: null, weights_sha256: null, profile: null, upstreams: null } as const;

/** The models of a new database (contract: models). */
const INITIAL_MODELS: readonly CatalogModel[] = [
  {
    id: DEFAULT_MODEL,
    kind: 'decision',
    status: 'live',
    description: DESCRIPTIONS.decision,
    context_tokens: 16_384,
    input_price_micros_per_million_tokens: MICROS_PER_DOLLAR / 2,
    released_at_ms: Date.UTC(2026, 10, 1),
    ...NO_WEIGHTS,
    weights: EMBEDDED,
  },
  {
    id: 'chat-1',
    kind: 'chat',
    status: 'coming_soon',
    description: DESCRIPTIONS.chat,
    context_tokens: null,
    input_price_micros_per_million_tokens: null,
    released_at_ms: null,
    ...NO_WEIGHTS,
  },
];

/** The default model of clients of the open decision-request format. */
const INITIAL_ALIASES: readonly ModelAlias[] = [{ alias: 'jev-latest', model_id: DEFAULT_MODEL }];

/**
 * Inserts the initial models that a store lacks, with their aliases; an operator's changes stay. A removed
 * alias is not restored, because these models are never removed.
 */
export async function seedCatalog(
  catalog: Pick<CatalogRecords, 'insertModelIfMissing' | 'writeAlias'>,
): Promise<void> {
  for (const model of INITIAL_MODELS) {
    if (!(await catalog.insertModelIfMissing(model))) continue;
    for (const given of INITIAL_ALIASES) if (given.model_id === model.id) await catalog.writeAlias(given);
  }
}

/** Reads the catalog on every call. Every method rejects as the store does. */
export class Catalog {
  readonly #records: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>;

  constructor(records: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>) {
    this.#records = records;
  }

  /** Returns the open model of that id or alias; undefined when it does not exist or is not open yet. */
  async findLive(name: string): Promise<CatalogModel | undefined> {
    const model = (await this.#records.findModel(name)) ?? (await this.#records.findModelByAlias(name));
    return model !== undefined && isOpen(model) ? model : undefined;
  }

  /** Returns all models by id, including those that are coming soon. */
  list(): Promise<CatalogModel[]> {
    return this.#records.allModels();
  }

  /** Returns the open models by id. */
  async listLive(): Promise<CatalogModel[]> {
    return (await this.list()).filter(isOpen);
  }

  /** Returns the open decision models by id. */
  async listDecisionModels(): Promise<ServedModelEntry[]> {
    return (await this.list()).map(asDecisionModel).filter((model) => model !== null);
  }
}

/** Returns true for a decision model with weights or upstreams. */
export function isServed({
  kind,
  weights,
  upstreams,
}: Pick<CatalogModel, 'kind' | 'weights' | 'upstreams'>): boolean {
  return kind === 'decision' && (weights !== null || upstreams !== null);
}

/** Returns true for a model of a new database, which every start restores. */
export function isInitialModel(id: string): boolean {
  return INITIAL_MODELS.some((model) => model.id === id);
}

/** Returns true for a live model. A decision model must also have weights or upstreams. */
function isOpen(model: CatalogModel): boolean {
  return model.status === 'live' && (model.kind !== 'decision' || isServed(model));
}

/**
 * Returns the model as a decision model; null unless it is live and has weights or upstreams, a price and a
 * context.
 */
export function asDecisionModel(model: CatalogModel): ServedModelEntry | null {
  const { id, context_tokens, input_price_micros_per_million_tokens } = model;
  const { weights, weights_sha256, profile, upstreams } = model;
  if (model.kind !== 'decision' || model.status !== 'live') return null;
  if (context_tokens === null || input_price_micros_per_million_tokens === null) return null;
  const live = { id, input_price_micros_per_million_tokens, context_tokens };
  if (upstreams !== null) return { ...live, upstreams };
  return weights === null ? null : { ...live, weights, weights_sha256, profile };
}
