import { AccountError } from '../access/account-error.ts';
import { type Actor, memberIdOf } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator, requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import { TIERS, TOP_UP_MIN_MICROS } from '../contract/tiers.ts';
import type { Organization, TierSettings } from '../store/account-records.ts';
import type { AuditLogDetail } from '../store/audit-log-records.ts';
import type { Records } from '../store/store.ts';
import { checkedName } from './names.ts';
import { requireUser } from './require-user.ts';
import { recalculateTier } from './tier-changes.ts';
import { inTransaction, type Transaction } from './transaction.ts';

/** The first project of every new organization. */
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

/**
 * Inserts an organization with its Default project and its owner, if it has one. To be called inside a
 * transaction.
 */
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
 * Creates the personal organization of a user who has none, because sign-up was interrupted. Resolves with
 * its id. Rejects with `not_found`, also for a deleted user.
 */
export async function ensurePersonalOrganization(
  context: AccountContext,
  user_id: string,
): Promise<{ readonly organization_id: string }> {
  const { store } = context;
  // Every sign-in calls this, and nearly all users have one, so the usual case needs no transaction.
  const known = await store.accounts.findPersonalOrganization(user_id);
  if (known !== undefined) return { organization_id: known.id };
  return await inTransaction(context, async (transaction) => {
    const { accounts } = transaction.records;
    const user = await requireUser(transaction.records, user_id);
    const meanwhile = await accounts.findPersonalOrganization(user_id);
    if (meanwhile !== undefined) return { organization_id: meanwhile.id };
    const { id } = await insertOrganization(transaction, {
      name: user.name,
      owner_user_id: user_id,
      personal: true,
    });
    return { organization_id: id };
  });
}

/** The most organizations that a user may own by creating them; the operator may create more. */
export const OWNED_ORGANIZATIONS_MAX = 20;

/**
 * Creates an organization with its Default project. A user becomes its owner. The operator names an owner, or
 * none; then it has no member until the operator adds one. Rejects with `invalid_name`,
 * `too_many_organizations`, `permission_denied`, and `not_found` for an owner who has deleted their account.
 */
export async function createOrganization(
  context: AccountContext,
  actor: Actor,
  given: { readonly name: string; readonly owner_user_id?: string },
): Promise<CreatedOrganization> {
  const name = checkedName(given.name);
  if (given.owner_user_id !== undefined) requireOperator(actor);
  const owner_user_id = given.owner_user_id ?? memberIdOf(actor) ?? null;
  return await inTransaction(context, async (transaction) => {
    const { accounts } = transaction.records;
    if (owner_user_id !== null) await requireUser(transaction.records, owner_user_id);
    if (actor.kind === 'user' && (await accounts.countOwned(actor.user_id)) >= OWNED_ORGANIZATIONS_MAX) {
      throw new AccountError('too_many_organizations');
    }
    const created = await insertOrganization(transaction, { name, owner_user_id, personal: false });
    await recordAct(transaction.records, context, actor, {
      action: 'organization.create',
      organization_id: created.id,
      object_id: created.id,
      detail: { name },
    });
    return created;
  });
}

/** Returns the organizations that the actor may see (the operator: all), oldest first. */
export function listOrganizations({ store }: AccountContext, actor: Actor): Promise<Organization[]> {
  return actor.kind === 'operator'
    ? store.accounts.allOrganizations()
    : store.accounts.organizationsOf(actor.user_id);
}

/** Returns one organization. Rejects with `not_found`. */
export async function getOrganization(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  organization_id: string,
): Promise<Organization> {
  await requirePermission(store, actor, organization_id, 'see');
  return readOrganization(store, organization_id);
}

/**
 * Returns one organization without a check of permissions, for rules that have made it. Rejects with
 * `not_found`.
 */
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
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly name: string },
): Promise<Organization> {
  const name = checkedName(given.name);
  const { organization_id } = given;
  return await context.store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'manage_organization');
    const before = await readOrganization(records, organization_id);
    if (before.name === name) return before;
    await records.accounts.renameOrganization(organization_id, name);
    await recordAct(records, context, actor, {
      action: 'organization.rename',
      organization_id,
      object_id: organization_id,
      detail: { from: before.name, to: name },
    });
    return readOrganization(records, organization_id);
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
 * Sets an organization's minimum tier and dedicated limits (operator only); running servers apply them within
 * a minute. Resolves with the changed organization. Rejects with `permission_denied`, `not_found`,
 * `invalid_limit`.
 */
export async function setTierSettings(
  context: AccountContext,
  actor: Actor,
  organization_id: string,
  settings: TierSettings,
): Promise<Organization> {
  requireOperator(actor);
  checkSettings(settings);
  const { store, clock } = context;
  return await store.transaction(async (records) => {
    await readOrganization(records, organization_id);
    if (Object.values(settings).some((value) => value !== undefined)) {
      await records.accounts.writeTierSettings(organization_id, settings);
      await recalculateTier(records, organization_id, 'operator', clock.now_ms());
      await recordAct(records, context, actor, {
        action: 'organization.limits',
        organization_id,
        object_id: organization_id,
        detail: givenSettings(settings),
      });
    }
    return readOrganization(records, organization_id);
  });
}

function givenSettings(settings: TierSettings): AuditLogDetail {
  const detail: Record<string, number | null> = {};
  for (const [name, value] of Object.entries(settings)) if (value !== undefined) detail[name] = value;
  return detail;
}

/**
 * Suspends an organization, or lifts its suspension (operator only). Its keys are refused within 60 seconds
 * (contract: key lookups are cached). Running requests are finished and charged, and members can still use
 * the console. Setting the present value changes nothing. Rejects with `permission_denied`, `not_found`.
 */
export async function setSuspended(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly is_suspended: boolean },
): Promise<Organization> {
  requireOperator(actor);
  const { organization_id, is_suspended } = given;
  const { store, clock } = context;
  return await store.transaction(async (records) => {
    const before = await readOrganization(records, organization_id);
    if ((before.suspended_at_ms !== null) === is_suspended) return before;
    await records.accounts.writeSuspension(organization_id, is_suspended ? clock.now_ms() : null);
    await recordAct(records, context, actor, {
      action: is_suspended ? 'organization.suspend' : 'organization.resume',
      organization_id,
      object_id: organization_id,
    });
    return await readOrganization(records, organization_id);
  });
}
