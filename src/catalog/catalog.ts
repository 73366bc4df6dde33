import { asc, eq, getTableColumns, sql } from 'drizzle-orm';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { modelAliases, models } from '../../db/sqlite/schema.ts';
import { MICROS_PER_DOLLAR } from '../money.ts';

/** A model as the catalog knows it; price and context are null until a model opens. */
export type CatalogModel = typeof models.$inferSelect;

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
const INITIAL_MODELS: readonly (typeof models.$inferInsert)[] = [
  {
    id: DEFAULT_MODEL,
    kind: 'decision',
    status: 'live',
    description: 'Answers typed questions about one record with a probability for every option.',
    context_tokens: 16_384,
    input_price_micros_per_million_tokens: MICROS_PER_DOLLAR / 2,
    released_at_ms: Date.UTC(2026, 10, 1),
  },
  { id: 'chat-1', kind: 'chat', status: 'coming_soon', description: 'A language model that is coming soon.' },
];

/** Puts the initial models into a database that lacks them; what an operator changed stays. */
export function seedCatalog(db: Db): void {
  transact(db, () => {
    for (const model of INITIAL_MODELS) db.insert(models).values(model).onConflictDoNothing().run();
  });
}

function prepareFind(db: Db) {
  return db
    .select()
    .from(models)
    .where(eq(models.id, sql.placeholder('id')))
    .prepare();
}

function prepareFindByAlias(db: Db) {
  return db
    .select(getTableColumns(models))
    .from(modelAliases)
    .innerJoin(models, eq(models.id, modelAliases.model_id))
    .where(eq(modelAliases.alias, sql.placeholder('alias')))
    .prepare();
}

function prepareList(db: Db) {
  return db.select().from(models).orderBy(asc(models.id)).prepare();
}

/** Reads the catalog, afresh each time; every method throws what the database throws. */
export class Catalog {
  readonly #find: ReturnType<typeof prepareFind>;
  readonly #findByAlias: ReturnType<typeof prepareFindByAlias>;
  readonly #list: ReturnType<typeof prepareList>;

  constructor(db: Db) {
    this.#find = prepareFind(db);
    this.#findByAlias = prepareFindByAlias(db);
    this.#list = prepareList(db);
  }

  /** The open model of that id or alias; undefined when it does not exist or is not open yet. */
  findLive(name: string): CatalogModel | undefined {
    const model = this.#find.get({ id: name }) ?? this.#findByAlias.get({ alias: name });
    return model !== undefined && isOpen(model) ? model : undefined;
  }

  /** All models, coming ones too, by id. */
  list(): CatalogModel[] {
    return this.#list.all();
  }

  /** The models that can be asked now, by id. */
  listLive(): CatalogModel[] {
    return this.list().filter(isOpen);
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
