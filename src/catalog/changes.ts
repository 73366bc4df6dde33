import { MICROS_PER_DOLLAR } from '../money.ts';
import type { Store } from '../store.ts';
import { isServed } from './catalog.ts';
import type { CatalogModel, CatalogRecords, ModelAlias } from './catalog-records.ts';

/** A change of the catalog that cannot be made, with one sentence that says why. Nothing was changed. */
export class CatalogChangeRefused extends Error {
  override readonly name = 'CatalogChangeRefused';
}

/** A model that the service is to know; it is not open yet. */
export type NewModel = Omit<CatalogModel, 'status' | 'released_at_ms'>;

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

async function requireModel(catalog: CatalogRecords, id: string): Promise<CatalogModel> {
  const model = await catalog.findModel(id);
  if (model === undefined) throw new CatalogChangeRefused(`There is no model ${JSON.stringify(id)}.`);
  return model;
}

async function update(
  catalog: CatalogRecords,
  id: string,
  values: Partial<Omit<CatalogModel, 'id'>>,
): Promise<CatalogModel> {
  await catalog.updateModel(id, values);
  return requireModel(catalog, id);
}

/** Adds a model that is coming soon. Rejects with `CatalogChangeRefused`. */
export async function addModel(store: Store, model: NewModel): Promise<CatalogModel> {
  requireName(model.id);
  requirePrice(model.input_price_micros_per_million_tokens);
  return await store.transaction(async ({ catalog }) => {
    if ((await catalog.findModel(model.id)) !== undefined) {
      throw new CatalogChangeRefused(`There is a model ${model.id} already.`);
    }
    const alias = await catalog.findAlias(model.id);
    if (alias !== undefined) {
      throw new CatalogChangeRefused(`${model.id} is an alias of ${alias.model_id}: take that away first.`);
    }
    await catalog.insertModel({ ...model, status: 'coming_soon', released_at_ms: null });
    return requireModel(catalog, model.id);
  });
}

/**
 * Opens a model for requests, as from `now_ms` when it was never open. Opening it again changes nothing. Rejects with
 * `CatalogChangeRefused`, also when no engine answers for the model.
 */
export function openModel(store: Store, id: string, now_ms: number): Promise<CatalogModel> {
  return store.transaction(async ({ catalog }) => {
    const model = await requireModel(catalog, id);
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
    return update(catalog, id, { status: 'live', released_at_ms: model.released_at_ms ?? now_ms });
  });
}

/** Closes a model: requests for it are refused as for one that is coming soon. Rejects with `CatalogChangeRefused`. */
export function closeModel(store: Store, id: string): Promise<CatalogModel> {
  return store.transaction(async ({ catalog }) => {
    await requireModel(catalog, id);
    return update(catalog, id, { status: 'coming_soon' });
  });
}

/**
 * Sets what a million input tokens cost, in micro-dollars; requests that are being answered keep the price before.
 * Rejects with `CatalogChangeRefused`.
 */
export async function setModelPrice(store: Store, id: string, price_micros: number): Promise<CatalogModel> {
  requirePrice(price_micros);
  return await store.transaction(async ({ catalog }) => {
    await requireModel(catalog, id);
    return update(catalog, id, { input_price_micros_per_million_tokens: price_micros });
  });
}

/** Gives a model another name, or an alias another model. An id is no alias. Rejects with `CatalogChangeRefused`. */
export async function setModelAlias(store: Store, given: ModelAlias): Promise<ModelAlias> {
  const { alias, model_id } = given;
  requireName(alias);
  return await store.transaction(async ({ catalog }) => {
    await requireModel(catalog, model_id);
    if ((await catalog.findModel(alias)) !== undefined) {
      throw new CatalogChangeRefused(`${alias} is a model itself, so it cannot be an alias.`);
    }
    await catalog.writeAlias(given);
    return given;
  });
}

/** Takes an alias away. Rejects with `CatalogChangeRefused` when there is none. */
export function removeModelAlias(store: Store, alias: string): Promise<void> {
  return store.transaction(async ({ catalog }) => {
    if ((await catalog.findAlias(alias)) === undefined) {
      throw new CatalogChangeRefused(`There is no alias ${JSON.stringify(alias)}.`);
    }
    await catalog.deleteAlias(alias);
  });
}

/** All aliases, by name. */
export function listModelAliases({ catalog }: Store): Promise<ModelAlias[]> {
  return catalog.allAliases();
}
