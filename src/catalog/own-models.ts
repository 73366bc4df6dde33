import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import { tierInForce } from '../contract/tiers.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import type { Records, Store } from '../store/store.ts';
import { NOT_TUNED } from './catalog.ts';
import type { NewTuning } from './changes.ts';

/**
 * The models that an organization may have of its own before its members may add no more; the operator may always. A node
 * keeps the corrections of each in memory once it is asked.
 */
export const OWN_MODELS_MAX = 10;

/** As long that an id is one that clients may write, with the organization's before it. */
const OWN_MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/;

type OwnModelContext = Pick<AccountContext, 'store' | 'clock'>;

/** A tuning that an organization adds as a model of its own. */
export interface NewOwnModel extends Omit<NewTuning, 'organization_id'> {
  readonly organization_id: string;
  readonly name: string;
}

/**
 * Returns the id of an organization's own model. It begins with the organization's id, so that it can neither take a name
 * from others nor tell which names they have.
 */
function ownModelId(organization_id: string, name: string): string {
  return `${organization_id}:${name}`;
}

/** Returns true for the id of any organization's own model, also of one that is gone. */
export function isOwnModelId(id: string): boolean {
  return /^org_[0-9A-Za-z]+:/.test(id);
}

/** Returns the organization's own models by id, also those whose base is closed. Rejects with `not_found`. */
export async function listOwnModels(
  store: Store,
  actor: Actor,
  organization_id: string,
): Promise<readonly CatalogModel[]> {
  await requirePermission(store, actor, organization_id, 'see');
  return await ownModels(store, organization_id);
}

/**
 * Rejects as `addOwnModel` does for any tuning, so that none is read for nothing: with `invalid_model_name`,
 * `too_many_models`, `credit_needed`, `not_found`, `permission_denied`.
 */
export async function requireRoomForOwnModel(
  records: Pick<Records, 'accounts' | 'catalog'>,
  actor: Actor,
  { organization_id, name }: Pick<NewOwnModel, 'organization_id' | 'name'>,
  now_ms: number,
): Promise<void> {
  await requirePermission(records, actor, organization_id, 'manage_models');
  if (!OWN_MODEL_NAME.test(name)) throw new AccountError('invalid_model_name');
  if (actor.kind === 'user') await requireRoom(records, organization_id, now_ms);
}

/**
 * Adds an open model of the organization, at the present price of its base (owners and admins). The caller has checked the
 * tuning. Rejects with `invalid_model_name`, `model_name_taken`, `too_many_models`, `credit_needed`, `unusable_tuning`,
 * `not_found`, `permission_denied`.
 */
export async function addOwnModel(
  { store, clock }: OwnModelContext,
  actor: Actor,
  { organization_id, name, base_id, tuning_sha256, tuning }: NewOwnModel,
): Promise<CatalogModel> {
  return await store.transaction(async (records) => {
    await requireRoomForOwnModel(records, actor, { organization_id, name }, clock.now_ms());
    const { catalog } = records;
    const base = await catalog.findModel(base_id);
    if (base === undefined || base.weights === null) throw new AccountError('unusable_tuning');
    const id = ownModelId(organization_id, name);
    const model: CatalogModel = {
      ...{ id, kind: 'decision', status: 'live', description: `${base_id}, tuned.` },
      context_tokens: base.context_tokens,
      input_price_micros_per_million_tokens: base.input_price_micros_per_million_tokens,
      released_at_ms: clock.now_ms(),
      ...{ weights: null, weights_sha256: null, profile: null, upstreams: null },
      ...NOT_TUNED,
      ...{ base_id, tuning_sha256, organization_id },
    };
    if (!(await catalog.insertModelIfMissing(model))) throw new AccountError('model_name_taken');
    await catalog.insertTuning({ model_id: id, tuning });
    await recordAct(records, { clock }, actor, {
      action: 'own_model.add',
      organization_id,
      object_id: id,
      detail: { base_id, tuning_sha256 },
    });
    return model;
  });
}

/**
 * Removes a model of the organization, with its aliases (owners and admins). Running requests are answered. Rejects with
 * `not_found`, `permission_denied`.
 */
export async function removeOwnModel(
  { store, clock }: OwnModelContext,
  actor: Actor,
  { organization_id, id }: { readonly organization_id: string; readonly id: string },
): Promise<void> {
  await store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'manage_models');
    const model = await records.catalog.findModel(id);
    if (model?.organization_id !== organization_id) {
      throw new AccountError('not_found', 'There is no such model.');
    }
    await records.catalog.deleteModel(id);
    await recordAct(records, { clock }, actor, {
      action: 'own_model.remove',
      organization_id,
      object_id: id,
    });
  });
}

/** Removes all models of an organization that closes, in the transaction of that. */
export async function removeAllOwnModels(
  records: Pick<Records, 'catalog'>,
  organization_id: string,
): Promise<void> {
  for (const { id } of await ownModels(records, organization_id)) await records.catalog.deleteModel(id);
}

async function ownModels(
  { catalog }: Pick<Records, 'catalog'>,
  organization_id: string,
): Promise<readonly CatalogModel[]> {
  return (await catalog.allModels()).filter((model) => model.organization_id === organization_id);
}

/** Rejects where the organization has no credit yet, so that nobody fills the database for nothing, or has enough models. */
async function requireRoom(
  records: Pick<Records, 'accounts' | 'catalog'>,
  organization_id: string,
  now_ms: number,
): Promise<void> {
  const organization = await records.accounts.findOrganization(organization_id);
  if (organization === undefined || tierInForce(organization, now_ms) === 0) {
    throw new AccountError('credit_needed');
  }
  if ((await ownModels(records, organization_id)).length >= OWN_MODELS_MAX) {
    throw new AccountError('too_many_models');
  }
}
