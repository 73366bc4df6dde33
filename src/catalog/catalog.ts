import { MICROS_PER_DOLLAR } from '../money.ts';
import type { CatalogModel, CatalogRecords } from './catalog-records.ts';

/** A live decision model: what a request can be answered by. */
export interface DecisionModelEntry {
  readonly id: string;
  readonly input_price_micros_per_million_tokens: number;
}

/** The model that `/v1/systemone` takes when the request names none. */
export const DEFAULT_MODEL = 'decision-1';

/** The label of `owned_by` in the model list. */
export const OWNED_BY = 'tds';

/** What a new database knows (spec, "Models"). */
const INITIAL_MODELS: readonly CatalogModel[] = [
  {
    id: DEFAULT_MODEL,
    kind: 'decision',
    status: 'live',
    description: 'Answers typed questions about one record with a probability for every option.',
    context_tokens: 16_384,
    input_price_micros_per_million_tokens: MICROS_PER_DOLLAR / 2,
    released_at_ms: Date.UTC(2026, 10, 1),
  },
  {
    id: 'chat-1',
    kind: 'chat',
    status: 'coming_soon',
    description: 'A language model that is coming soon.',
    context_tokens: null,
    input_price_micros_per_million_tokens: null,
    released_at_ms: null,
  },
];

/** Puts the initial models into a store that lacks them; what an operator changed stays. */
export async function seedCatalog(catalog: Pick<CatalogRecords, 'insertModelIfMissing'>): Promise<void> {
  for (const model of INITIAL_MODELS) await catalog.insertModelIfMissing(model);
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
}

/** Whether there is an engine for the model: there is one, and it answers as the default model, whatever its weights. */
export function isServed({ id }: Pick<CatalogModel, 'id'>): boolean {
  return id === DEFAULT_MODEL;
}

/** A row says that a model is live; a decision model must besides be one that its own engine answers for. */
function isOpen(model: CatalogModel): boolean {
  return model.status === 'live' && (model.kind !== 'decision' || isServed(model));
}

/** The model as something that decides; null when it is not a live decision model with a price and a context. */
export function asDecisionModel(model: CatalogModel): DecisionModelEntry | null {
  const { id, kind, status, context_tokens, input_price_micros_per_million_tokens } = model;
  if (kind !== 'decision' || status !== 'live') return null;
  if (context_tokens === null || input_price_micros_per_million_tokens === null) return null;
  return { id, input_price_micros_per_million_tokens };
}
