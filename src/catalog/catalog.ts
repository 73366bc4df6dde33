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
  /** Positions that a plan may use, or tokens that an upstream reads of a record with a question. */
  readonly context_tokens: number;
  readonly input_price_micros_per_million_tokens: number;
}

/** A live decision model that an engine of this process answers for. */
export interface DecisionModelEntry extends LiveModel, ModelWeights {}

/** A live decision model that upstreams answer for. */
export interface UpstreamModelEntry extends LiveModel {
  readonly upstreams: UpstreamPool;
}

/** A live decision model: what a request can be answered by, and at what price. */
export type ServedModelEntry = DecisionModelEntry | UpstreamModelEntry;

/** The model that `/v1/systemone` takes when the request names none. */
export const DEFAULT_MODEL = 'decision-1';

/** The label of `owned_by` in the model list. */
export const OWNED_BY = 'tds';

/** What the model list says of a model of a kind, unless the operator gives another sentence. */
export const DESCRIPTIONS: Readonly<Record<CatalogModel['kind'], string>> = {
  decision: 'Answers typed questions about one record with a probability for every option.',
  chat: 'A language model that is coming soon.',
};

const NO_WEIGHTS = { weights: null, weights_sha256: null, profile: null, upstreams: null } as const;

/** What a new database knows (contract: models). */
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

/** What clients of the open decision-request format ask for when they name no model themselves. */
const INITIAL_ALIASES: readonly ModelAlias[] = [{ alias: 'jev-latest', model_id: DEFAULT_MODEL }];

/**
 * Puts the initial models into a store that lacks them, each with its aliases; what an operator changed stays. An alias
 * that was taken away stays away, because these models are never removed.
 */
export async function seedCatalog(
  catalog: Pick<CatalogRecords, 'insertModelIfMissing' | 'writeAlias'>,
): Promise<void> {
  for (const model of INITIAL_MODELS) {
    if (!(await catalog.insertModelIfMissing(model))) continue;
    for (const given of INITIAL_ALIASES) if (given.model_id === model.id) await catalog.writeAlias(given);
  }
}

/** Reads the catalog, afresh each time; every method rejects with what the store rejects with. */
export class Catalog {
  readonly #records: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>;

  constructor(records: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>) {
    this.#records = records;
  }

  /** The open model of that id or alias; undefined when it does not exist or is not open yet. */
  async findLive(name: string): Promise<CatalogModel | undefined> {
    const model = (await this.#records.findModel(name)) ?? (await this.#records.findModelByAlias(name));
    return model !== undefined && isOpen(model) ? model : undefined;
  }

  /** All models, coming ones too, by id. */
  list(): Promise<CatalogModel[]> {
    return this.#records.allModels();
  }

  /** The models that can be asked now, by id. */
  async listLive(): Promise<CatalogModel[]> {
    return (await this.list()).filter(isOpen);
  }

  /** The decision models that can be asked now, by id. */
  async listDecisionModels(): Promise<ServedModelEntry[]> {
    return (await this.list()).map(asDecisionModel).filter((model) => model !== null);
  }
}

/** Whether anything answers for the model: it is a decision model with weights or upstreams. */
export function isServed({
  kind,
  weights,
  upstreams,
}: Pick<CatalogModel, 'kind' | 'weights' | 'upstreams'>): boolean {
  return kind === 'decision' && (weights !== null || upstreams !== null);
}

/** Whether a new database knows the model, so that every start puts it back. */
export function isInitialModel(id: string): boolean {
  return INITIAL_MODELS.some((model) => model.id === id);
}

/** A row says that a model is live; a decision model must besides have an engine that answers for it. */
function isOpen(model: CatalogModel): boolean {
  return model.status === 'live' && (model.kind !== 'decision' || isServed(model));
}

/** The model as something that decides; null when it is no live decision model that is served, with price and context. */
export function asDecisionModel(model: CatalogModel): ServedModelEntry | null {
  const { id, context_tokens, input_price_micros_per_million_tokens } = model;
  const { weights, weights_sha256, profile, upstreams } = model;
  if (model.kind !== 'decision' || model.status !== 'live') return null;
  if (context_tokens === null || input_price_micros_per_million_tokens === null) return null;
  const live = { id, input_price_micros_per_million_tokens, context_tokens };
  if (upstreams !== null) return { ...live, upstreams };
  return weights === null ? null : { ...live, weights, weights_sha256, profile };
}
