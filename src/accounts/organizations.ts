import type { Records } from '../store.ts';
import type { Organization, TierSettings } from './account-records.ts';
import { type Actor, userIdOf } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { checkedName } from './names.ts';
import { requireOperator, requirePermission } from './permissions.ts';
import { recalculateTier } from './tier-changes.ts';
import { TIERS, TOP_UP_MIN_MICROS } from './tiers.ts';
import { inTransaction, type Transaction } from './transaction.ts';

/** The project that every new organization starts with. */
const DEFAULT_PROJECT_NAME = 'Default';

export interface CreatedOrganization {
  readonly id: string;
  readonly name: string;
  readonly default_project_id: string;
}

interface NewOrganization {
  readonly name: string;
  readonly owner_user_id: string | null;
  readonly personal: boolean;
}

/** Writes an organization with its Default project and its owner, if it has one. To be called inside a transaction. */
export async function insertOrganization(
  { records: { accounts }, clock, identifiers }: Transaction,
  { name, owner_user_id, personal }: NewOrganization,
): Promise<CreatedOrganization> {
  const created_at_ms = clock.now_ms();
  const id = identifiers.id('organization');
  const default_project_id = identifiers.id('project');
  const personal_user_id = personal ? owner_user_id : null;
  await accounts.insertOrganization({ id, name, personal_user_id, created_at_ms });
  await accounts.insertProject({
    id: default_project_id,
    organization_id: id,
    name: DEFAULT_PROJECT_NAME,
    created_at_ms,
  });
  if (owner_user_id !== null) {
    await accounts.insertMember({
      organization_id: id,
      user_id: owner_user_id,
      role: 'owner',
      created_at_ms,
    });
  }
  return { id, name, default_project_id };
}

/**
 * Creates an organization with its Default project. A user becomes its owner. The operator names its owner; without
 * one it has no member until the operator adds its first owner. Rejects with `invalid_name`, `permission_denied`.
 */
export async function createOrganization(
  context: AccountContext,
  actor: Actor,
  given: { readonly name: string; readonly owner_user_id?: string },
): Promise<CreatedOrganization> {
  const name = checkedName(given.name);
  if (given.owner_user_id !== undefined) requireOperator(actor);
  const owner_user_id = given.owner_user_id ?? userIdOf(actor);
  return await inTransaction(context, (transaction) =>
    insertOrganization(transaction, { name, owner_user_id, personal: false }),
  );
}

/** The organizations that the actor may see (the operator: all), oldest first. */
export function listOrganizations({ store }: AccountContext, actor: Actor): Promise<Organization[]> {
  return actor.kind === 'operator'
    ? store.accounts.allOrganizations()
    : store.accounts.organizationsOf(actor.user_id);
}

/** One organization. Rejects with `not_found`. */
export async function getOrganization(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  organization_id: string,
): Promise<Organization> {
  await requirePermission(store, actor, organization_id, 'see');
  return readOrganization(store, organization_id);
}

/** One organization, whoever asks: for rules that have checked the actor. Rejects with `not_found`. */
export async function readOrganization(
  { accounts }: Pick<Records, 'accounts'>,
  organization_id: string,
): Promise<Organization> {
  const organization = await accounts.findOrganization(organization_id);
  if (organization === undefined) throw new AccountError('not_found', 'There is no such organization.');
  return organization;
}

/** Renames an organization (owners and admins). Rejects with `invalid_name`, `not_found`, `permission_denied`. */
export async function renameOrganization(
  { store }: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly name: string },
): Promise<Organization> {
  const name = checkedName(given.name);
  return await store.transaction(async (records) => {
    await requirePermission(records, actor, given.organization_id, 'manage_organization');
    await records.accounts.renameOrganization(given.organization_id, name);
    return readOrganization(records, given.organization_id);
  });
}

const SETTING_RANGES: Record<keyof TierSettings, readonly [least: number, most: number, text: string]> = {
  minimum_tier: [0, TIERS.length - 1, `A minimum tier must be a whole number from 0 to ${TIERS.length - 1}.`],
  requests_per_minute: [1, 1e9, 'Requests per minute must be a whole number above 0.'],
  tokens_per_minute: [1, 1e12, 'Tokens per minute must be a whole number above 0.'],
  questions_per_request: [1, 1e6, 'Questions per request must be a whole number above 0.'],
  top_up_max_micros: [TOP_UP_MIN_MICROS, 1e15, 'The largest top-up must be at least $5.'],
};

function checkSettings(settings: TierSettings): void {
  const given: Partial<Record<string, number | null>> = { ...settings };
  for (const [name, [least, most, text]] of Object.entries(SETTING_RANGES)) {
    const value = given[name];
    if (value === undefined || value === null) continue;
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw new AccountError('invalid_limit', text);
    }
  }
}

/**
 * Sets an organization's minimum tier and dedicated limits (operator only); running servers apply them within a minute.
 * Resolves with the organization as it is then. Rejects with `permission_denied`, `not_found`, `invalid_limit`.
 */
export async function setTierSettings(
  { store, clock }: AccountContext,
  actor: Actor,
  organization_id: string,
  settings: TierSettings,
): Promise<Organization> {
  requireOperator(actor);
  checkSettings(settings);
  return await store.transaction(async (records) => {
    await readOrganization(records, organization_id);
    if (Object.values(settings).some((value) => value !== undefined)) {
      await records.accounts.writeTierSettings(organization_id, settings);
      await recalculateTier(records, organization_id, 'operator', clock.now_ms());
    }
    return readOrganization(records, organization_id);
  });
}
