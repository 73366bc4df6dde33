import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import type { AuditLogAction } from '../audit-log/actions.ts';
import { recordAct } from '../audit-log/record.ts';
import { MICROS_PER_DOLLAR } from '../contract/money.ts';
import type { AuditLogDetail } from '../store/audit-log-records.ts';
import type {
  CatalogModel,
  CatalogRecords,
  ModelAlias,
  ModelWeights,
  UpstreamCalibration,
  UpstreamPool,
} from '../store/catalog-records.ts';
import type { Records, Store } from '../store/store.ts';
import { isInitialModel, isServed, NOT_TUNED } from './catalog.ts';

/** A refusal to change the catalog, with the reason in one sentence. Nothing was changed. */
export class CatalogChangeRefused extends Error {
  override readonly name = 'CatalogChangeRefused';
}

/** The parts that changes of the catalog use. */
type CatalogContext = Pick<AccountContext, 'store' | 'clock'>;

/** Runs a change in one transaction, with its entry in the audit log; for the operator only. */
async function change<T>(
  { store, clock }: CatalogContext,
  actor: Actor,
  act: { readonly action: AuditLogAction; readonly object_id: string; readonly detail?: AuditLogDetail },
  work: (records: Records) => Promise<T>,
): Promise<T> {
  requireOperator(actor);
  return await store.transaction(async (records) => {
    const result = await work(records);
    await recordAct(records, { clock }, actor, { ...act, organization_id: null });
    return result;
  });
}

/** A new model of the catalog. */
export type NewModel = Omit<
  CatalogModel,
  'status' | 'released_at_ms' | 'upstreams' | keyof ModelWeights | keyof typeof NOT_TUNED
>;

/** The corrections of a new model, which shares the weights of another one. */
export interface NewTuning {
  readonly base_id: string;
  /** As in `CatalogModel`. */
  readonly tuning_sha256: string;
  readonly organization_id: string | null;
  /** The text of the tuning file, which the caller has checked. */
  readonly tuning: string;
}

/** The weights of a new model, or its upstreams, or its tuning. */
export type NewSource = ModelWeights | { readonly upstreams: UpstreamPool } | NewTuning;

/** The names that clients may write as `model`: no character that a terminal or a log interprets. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$/;

/** The highest price at which the cost of the largest request is still an exact number. */
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

/** Rejects with `CatalogChangeRefused` where the model's id or price is not possible; changes nothing. */
export async function requireAddable(
  catalog: CatalogRecords,
  {
    id,
    input_price_micros_per_million_tokens,
  }: Pick<NewModel, 'id' | 'input_price_micros_per_million_tokens'>,
): Promise<void> {
  requireName(id);
  requirePrice(input_price_micros_per_million_tokens);
  if ((await catalog.findModel(id)) !== undefined) {
    throw new CatalogChangeRefused(`There is a model ${id} already.`);
  }
  const alias = await catalog.findAlias(id);
  if (alias !== undefined) {
    throw new CatalogChangeRefused(`${id} is an alias of ${alias.model_id}: take that away first.`);
  }
}

/**
 * Adds a model that is coming soon. With weights, which the caller has checked, it can be opened. Rejects
 * with `CatalogChangeRefused`.
 */
export function addModel(
  context: CatalogContext,
  actor: Actor,
  model: NewModel,
  source: NewSource | null = null,
): Promise<CatalogModel> {
  return change(context, actor, added(model, false), ({ catalog }) => insertClosed(catalog, model, source));
}

/** Adds a model with checked weights, or upstreams, and opens it for requests. Rejects with `CatalogChangeRefused`. */
export function addOpenModel(
  context: CatalogContext,
  actor: Actor,
  model: NewModel,
  source: NewSource,
): Promise<CatalogModel> {
  return change(context, actor, added(model, true), async ({ catalog }) =>
    setLive(catalog, await insertClosed(catalog, model, source), context.clock.now_ms()),
  );
}

function added({ id, kind, input_price_micros_per_million_tokens }: NewModel, is_open: boolean) {
  const detail = { kind, input_price_micros_per_million_tokens, is_open };
  return { action: 'model.add', object_id: id, detail } as const;
}

async function insertClosed(
  catalog: CatalogRecords,
  model: NewModel,
  source: NewSource | null,
): Promise<CatalogModel> {
  await requireAddable(catalog, model);
  const { tuning, ...own } = source !== null && 'tuning' in source ? source : { ...source, tuning: null };
  await catalog.insertModel({
    ...model,
    weights: null,
    weights_sha256: null,
    profile: null,
    upstreams: null,
    ...NOT_TUNED,
    ...own,
    status: 'coming_soon',
    released_at_ms: null,
  });
  if (tuning !== null) await catalog.insertTuning({ model_id: model.id, tuning });
  return requireModel(catalog, model.id);
}

/**
 * Opens a model for requests, and dates its release now if it was never open. Opening it again changes
 * nothing. Rejects with `CatalogChangeRefused`, also for a model without weights or upstreams.
 */
export function openModel(context: CatalogContext, actor: Actor, id: string): Promise<CatalogModel> {
  return change(context, actor, { action: 'model.open', object_id: id }, async ({ catalog }) =>
    setLive(catalog, await requireModel(catalog, id), context.clock.now_ms()),
  );
}

function setLive(catalog: CatalogRecords, model: CatalogModel, now_ms: number): Promise<CatalogModel> {
  const { id } = model;
  if (!isServed(model)) {
    throw new CatalogChangeRefused(`${id} cannot be opened: this service has no engine that answers for it.`);
  }
  if (model.input_price_micros_per_million_tokens === null || model.context_tokens === null) {
    throw new CatalogChangeRefused(`${id} cannot be opened without a price and a number of context tokens.`);
  }
  return update(catalog, id, { status: 'live', released_at_ms: model.released_at_ms ?? now_ms });
}

/** Closes a model: requests for it are refused as for one that is coming soon. Rejects with `CatalogChangeRefused`. */
export function closeModel(context: CatalogContext, actor: Actor, id: string): Promise<CatalogModel> {
  return change(context, actor, { action: 'model.close', object_id: id }, async ({ catalog }) => {
    await requireModel(catalog, id);
    return update(catalog, id, { status: 'coming_soon' });
  });
}

/**
 * Removes a model with its aliases from the catalog; past usage keeps its id. Running requests are finished.
 * Rejects with `CatalogChangeRefused`, also for a model that comes with the program.
 */
export function removeModel(context: CatalogContext, actor: Actor, id: string): Promise<CatalogModel> {
  return change(context, actor, { action: 'model.remove', object_id: id }, async ({ catalog }) => {
    const model = await requireModel(catalog, id);
    if (isInitialModel(id)) {
      throw new CatalogChangeRefused(
        `${id} comes with the program and cannot be removed: close it with "tds model close ${id}".`,
      );
    }
    const tuned = (await catalog.allModels()).find(({ base_id }) => base_id === id);
    if (tuned !== undefined) {
      throw new CatalogChangeRefused(`${tuned.id} is a tuning of ${id}: remove it first.`);
    }
    await catalog.deleteModel(id);
    return model;
  });
}

/**
 * Gives a model other weights, or confirms the present ones; the caller has checked them. `before` is the row
 * at the start of the check. Rejects with `CatalogChangeRefused`, also when the weights were changed since.
 */
export function setModelWeights(
  context: CatalogContext,
  actor: Actor,
  before: Pick<CatalogModel, 'id' | 'context_tokens' | keyof ModelWeights>,
  { weights, weights_sha256, profile }: ModelWeights,
): Promise<CatalogModel> {
  const { id } = before;
  const act = { action: 'model.weights', object_id: id, detail: { weights_sha256 } } as const;
  return change(context, actor, act, async ({ catalog }) => {
    const now = await requireModel(catalog, id);
    const is_same =
      now.context_tokens === before.context_tokens &&
      now.weights === before.weights &&
      now.weights_sha256 === before.weights_sha256 &&
      now.profile === before.profile;
    if (!is_same) throw new CatalogChangeRefused(`${id} was changed while its new weights were loaded.`);
    return update(catalog, id, { weights, weights_sha256, profile });
  });
}

/**
 * Stops or resumes new requests to one of a model's upstreams; running ones are finished. Rejects with
 * `CatalogChangeRefused`.
 */
export function drainUpstream(
  context: CatalogContext,
  actor: Actor,
  id: string,
  { address, is_draining }: { readonly address: string; readonly is_draining: boolean },
): Promise<CatalogModel> {
  const act = { action: 'model.drain', object_id: id, detail: { address, is_draining } } as const;
  return change(context, actor, act, async ({ catalog }) => {
    const { upstreams } = await requireModel(catalog, id);
    if (upstreams === null) throw new CatalogChangeRefused(`${id} has no upstreams.`);
    if (!upstreams.addresses.includes(address)) {
      throw new CatalogChangeRefused(
        `${id} has no upstream ${address}, only ${upstreams.addresses.join(', ')}.`,
      );
    }
    const others = upstreams.draining.filter((other) => other !== address);
    const draining = is_draining ? [...others, address] : others;
    return update(catalog, id, { upstreams: { ...upstreams, draining } });
  });
}

/**
 * Sets the calibration of a model with upstreams, which running services follow; `before` is its pool at the
 * start of the fit. Rejects with `CatalogChangeRefused`, also when the pool's servers have changed since.
 */
export function setUpstreamCalibration(
  context: CatalogContext,
  actor: Actor,
  { id, upstreams: before }: Pick<CatalogModel, 'id' | 'upstreams'>,
  calibration: UpstreamCalibration,
): Promise<CatalogModel> {
  const { fingerprint } = calibration;
  const act = { action: 'model.calibrate', object_id: id, detail: { fingerprint } } as const;
  return change(context, actor, act, async ({ catalog }) => {
    const { upstreams } = await requireModel(catalog, id);
    const is_same =
      upstreams !== null &&
      before !== null &&
      upstreams.protocol === before.protocol &&
      upstreams.model === before.model &&
      upstreams.vocabulary?.sha256 === before.vocabulary?.sha256;
    if (!is_same) throw new CatalogChangeRefused(`${id} was changed while it was calibrated.`);
    return update(catalog, id, { upstreams: { ...upstreams, calibration } });
  });
}

/**
 * Sets the price of a million input tokens, in micro-dollars; running requests keep the old price. Rejects
 * with `CatalogChangeRefused`.
 */
export async function setModelPrice(
  context: CatalogContext,
  actor: Actor,
  id: string,
  price_micros: number,
): Promise<CatalogModel> {
  requirePrice(price_micros);
  const act = { action: 'model.price', object_id: id, detail: { price_micros } } as const;
  return await change(context, actor, act, async ({ catalog }) => {
    await requireModel(catalog, id);
    return update(catalog, id, { input_price_micros_per_million_tokens: price_micros });
  });
}

/**
 * Adds an alias of a model, or moves an alias to another model. An id cannot be an alias. Rejects with
 * `CatalogChangeRefused`.
 */
export async function setModelAlias(
  context: CatalogContext,
  actor: Actor,
  given: ModelAlias,
): Promise<ModelAlias> {
  const { alias, model_id } = given;
  requireName(alias);
  const act = { action: 'model.alias', object_id: alias, detail: { model_id } } as const;
  return await change(context, actor, act, async ({ catalog }) => {
    await requireModel(catalog, model_id);
    if ((await catalog.findModel(alias)) !== undefined) {
      throw new CatalogChangeRefused(`${alias} is a model itself, so it cannot be an alias.`);
    }
    await catalog.writeAlias(given);
    return given;
  });
}

/** Removes an alias. Rejects with `CatalogChangeRefused` when there is none. */
export function removeModelAlias(context: CatalogContext, actor: Actor, alias: string): Promise<void> {
  return change(context, actor, { action: 'model.unalias', object_id: alias }, async ({ catalog }) => {
    if ((await catalog.findAlias(alias)) === undefined) {
      throw new CatalogChangeRefused(`There is no alias ${JSON.stringify(alias)}.`);
    }
    await catalog.deleteAlias(alias);
  });
}

/** Returns all aliases, by name. */
export function listModelAliases({ catalog }: Store): Promise<ModelAlias[]> {
  return catalog.allAliases();
}
