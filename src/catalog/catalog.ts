import { MICROS_PER_DOLLAR } from '../contract/money.ts';
import {
  type CatalogModel,
  type CatalogRecords,
  EMBEDDED,
  type ModelAlias,
  type ModelWeights,
  type UpstreamPool,
} from '../store/catalog-records.ts';

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
export type ServedModelEntry = DecisionModelEntry | UpstreamModelEntry | TunedModelEntry;

/** A live model that corrects the answers of another one, with its weights or upstreams. */
export interface TunedModelEntry extends LiveModel {
  readonly base: DecisionModelEntry | UpstreamModelEntry;
  /** As in `CatalogModel`. */
  readonly tuning_sha256: string;
}

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

/** The fields of a model that is not tuned, for every organization. */
export const NOT_TUNED = { base_id: null, tuning_sha256: null, organization_id: null } as const;

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
    ...NOT_TUNED,
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
    ...NOT_TUNED,
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
  constructor(
    private readonly records: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>,
  ) {}

  /**
   * Returns the open model of that id or alias that the organization may ask; undefined when it does not exist or is
   * not open yet.
   */
  async findLive(name: string, organization_id: string): Promise<CatalogModel | undefined> {
    const model = (await this.records.findModel(name)) ?? (await this.records.findModelByAlias(name));
    if (model === undefined || !isSeenBy(organization_id)(model)) return undefined;
    return isOpen(model, await this.#baseOf(model)) ? model : undefined;
  }

  /** Returns the decision model of a row that was just read, as `asDecisionModel`. */
  async served(model: CatalogModel): Promise<ServedModelEntry | null> {
    return asDecisionModel(model, await this.#baseOf(model));
  }

  /** Returns all models by id, including those that are coming soon. */
  list(): Promise<CatalogModel[]> {
    return this.records.allModels();
  }

  /** Returns the open models that the organization may ask, by id. */
  async listLive(organization_id: string): Promise<CatalogModel[]> {
    const models = await this.list();
    return models.filter((model) => isSeenBy(organization_id)(model) && isOpen(model, baseIn(models, model)));
  }

  /** Returns the open decision models by id, those of one organization too. */
  async listDecisionModels(): Promise<ServedModelEntry[]> {
    const models = await this.list();
    return models
      .map((model) => asDecisionModel(model, baseIn(models, model)))
      .filter((model) => model !== null);
  }

  /** Returns the open decision models by id that the organization may ask. */
  async listDecisionModelsOf(organization_id: string): Promise<ServedModelEntry[]> {
    const models = await this.list();
    return models
      .filter(isSeenBy(organization_id))
      .map((model) => asDecisionModel(model, baseIn(models, model)))
      .filter((model) => model !== null);
  }

  async #baseOf({ base_id }: CatalogModel): Promise<CatalogModel | undefined> {
    return base_id === null ? undefined : await this.records.findModel(base_id);
  }
}

function baseIn(models: readonly CatalogModel[], { base_id }: CatalogModel): CatalogModel | undefined {
  return base_id === null ? undefined : models.find(({ id }) => id === base_id);
}

function isSeenBy(organization_id: string): (model: CatalogModel) => boolean {
  return (model) => model.organization_id === null || model.organization_id === organization_id;
}

/** Returns true for a decision model with weights, of its own or of its base, or upstreams. */
export function isServed({
  kind,
  weights,
  upstreams,
  base_id,
}: Pick<CatalogModel, 'kind' | 'weights' | 'upstreams' | 'base_id'>): boolean {
  return kind === 'decision' && (weights !== null || upstreams !== null || base_id !== null);
}

/** Returns true for a model of a new database, which every start restores. */
export function isInitialModel(id: string): boolean {
  return INITIAL_MODELS.some((model) => model.id === id);
}

/**
 * Returns true for a live model. A decision model must also have weights or upstreams, and a tuned one an open base.
 */
function isOpen(model: CatalogModel, base: CatalogModel | undefined): boolean {
  if (model.base_id !== null && (base === undefined || !isOpen(base, undefined))) return false;
  return model.status === 'live' && (model.kind !== 'decision' || isServed(model));
}

/**
 * Returns the model as a decision model; null unless it is live and has weights or upstreams, a price and a
 * context. `base` is the row of a tuned model's base, which must be all of that too.
 */
export function asDecisionModel(model: CatalogModel, base?: CatalogModel): ServedModelEntry | null {
  const { id, context_tokens, input_price_micros_per_million_tokens } = model;
  const { weights, weights_sha256, profile, upstreams, tuning_sha256 } = model;
  if (model.kind !== 'decision' || model.status !== 'live') return null;
  if (context_tokens === null || input_price_micros_per_million_tokens === null) return null;
  const live = { id, input_price_micros_per_million_tokens, context_tokens };
  if (tuning_sha256 !== null) {
    const own = base === undefined ? null : asDecisionModel(base);
    return own === null || 'base' in own ? null : { ...live, base: own, tuning_sha256 };
  }
  if (upstreams !== null) return { ...live, upstreams };
  return weights === null ? null : { ...live, weights, weights_sha256, profile };
}
