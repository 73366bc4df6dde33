import { asc, eq } from 'drizzle-orm';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { modelAliases, models } from '../../db/sqlite/schema.ts';
import { MICROS_PER_DOLLAR } from '../money.ts';
import { type CatalogModel, isServed } from './catalog.ts';
import type { MODEL_KINDS } from './catalog-records.ts';

/** A change of the catalog that cannot be made, with one sentence that says why. Nothing was changed. */
export class CatalogChangeRefused extends Error {
  override readonly name = 'CatalogChangeRefused';
}

/** A model that the service is to know; it is not open yet. */
export interface NewModel {
  readonly id: string;
  readonly kind: (typeof MODEL_KINDS)[number];
  readonly description: string;
  readonly context_tokens: number | null;
  readonly input_price_micros_per_million_tokens: number | null;
}

/** Another name of a model. */
export type ModelAlias = typeof modelAliases.$inferSelect;

/** What clients write as `model`: what the ids of known models look like, and nothing that a terminal or a log obeys. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$/;

/** Above it the cost of the largest request would not be an exact number any more. */
const PRICE_MAX_MICROS = 1_000 * MICROS_PER_DOLLAR;

function requireName(name: string): void {
  if (MODEL_NAME.test(name)) return;
  throw new CatalogChangeRefused(
    `${JSON.stringify(name)} cannot name a model: use 1 to 100 letters, digits, ".", "_", ":", "/" and "-".`,
  );
}

function requirePrice(price_micros: number | null): void {
  if (price_micros === null || price_micros <= PRICE_MAX_MICROS) return;
  throw new CatalogChangeRefused('A price must be at most $1000 per 1M input tokens.');
}

function find(db: Db, id: string): CatalogModel | undefined {
  return db.select().from(models).where(eq(models.id, id)).get();
}

function findAlias(db: Db, alias: string): ModelAlias | undefined {
  return db.select().from(modelAliases).where(eq(modelAliases.alias, alias)).get();
}

function requireModel(db: Db, id: string): CatalogModel {
  const model = find(db, id);
  if (model === undefined) throw new CatalogChangeRefused(`There is no model ${JSON.stringify(id)}.`);
  return model;
}

function update(db: Db, id: string, values: Partial<Omit<CatalogModel, 'id'>>): CatalogModel {
  db.update(models).set(values).where(eq(models.id, id)).run();
  return requireModel(db, id);
}

/** Adds a model that is coming soon. Throws `CatalogChangeRefused`. */
export function addModel(db: Db, model: NewModel): CatalogModel {
  requireName(model.id);
  requirePrice(model.input_price_micros_per_million_tokens);
  return transact(db, () => {
    if (find(db, model.id) !== undefined) {
      throw new CatalogChangeRefused(`There is a model ${model.id} already.`);
    }
    const alias = findAlias(db, model.id);
    if (alias !== undefined) {
      throw new CatalogChangeRefused(`${model.id} is an alias of ${alias.model_id}: take that away first.`);
    }
    db.insert(models)
      .values({ ...model, status: 'coming_soon' })
      .run();
    return requireModel(db, model.id);
  });
}

/**
 * Opens a model for requests, as from `now_ms` when it was never open. Opening it again changes nothing. Throws
 * `CatalogChangeRefused`, also when no engine answers for the model.
 */
export function openModel(db: Db, id: string, now_ms: number): CatalogModel {
  return transact(db, () => {
    const model = requireModel(db, id);
    if (!isServed(model)) {
      throw new CatalogChangeRefused(
        `${id} cannot be opened: this service has no engine that answers for it.`,
      );
    }
    if (model.input_price_micros_per_million_tokens === null || model.context_tokens === null) {
      throw new CatalogChangeRefused(
        `${id} cannot be opened without a price and a number of context tokens.`,
      );
    }
    return update(db, id, { status: 'live', released_at_ms: model.released_at_ms ?? now_ms });
  });
}

/** Closes a model: requests for it are refused as for one that is coming soon. Throws `CatalogChangeRefused`. */
export function closeModel(db: Db, id: string): CatalogModel {
  return transact(db, () => update(db, requireModel(db, id).id, { status: 'coming_soon' }));
}

/**
 * Sets what a million input tokens cost, in micro-dollars; requests that are being answered keep the price before.
 * Throws `CatalogChangeRefused`.
 */
export function setModelPrice(db: Db, id: string, price_micros: number): CatalogModel {
  requirePrice(price_micros);
  return transact(db, () =>
    update(db, requireModel(db, id).id, { input_price_micros_per_million_tokens: price_micros }),
  );
}

/** Gives a model another name, or an alias another model. An id is no alias. Throws `CatalogChangeRefused`. */
export function setModelAlias(db: Db, given: ModelAlias): ModelAlias {
  const { alias, model_id } = given;
  requireName(alias);
  return transact(db, () => {
    requireModel(db, model_id);
    if (find(db, alias) !== undefined) {
      throw new CatalogChangeRefused(`${alias} is a model itself, so it cannot be an alias.`);
    }
    db.insert(modelAliases)
      .values(given)
      .onConflictDoUpdate({ target: modelAliases.alias, set: { model_id } })
      .run();
    return given;
  });
}

/** Takes an alias away. Throws `CatalogChangeRefused` when there is none. */
export function removeModelAlias(db: Db, alias: string): void {
  transact(db, () => {
    if (findAlias(db, alias) === undefined) {
      throw new CatalogChangeRefused(`There is no alias ${JSON.stringify(alias)}.`);
    }
    db.delete(modelAliases).where(eq(modelAliases.alias, alias)).run();
  });
}

/** All aliases, by name. */
export function listModelAliases(db: Db): ModelAlias[] {
  return db.select().from(modelAliases).orderBy(asc(modelAliases.alias)).all();
}
