import { asc, eq, getTableColumns } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { members, organizations, projects } from '../../db/sqlite/schema.ts';
import type { Records } from '../store.ts';
import type { Organization } from './account-records.ts';
import { type Actor, userIdOf } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { checkedName } from './names.ts';
import { requireOperator } from './permissions.ts';
import { readOrganization as readNow, recalculateTier, requirePermission } from './synchronous.ts';
import { TIERS, TOP_UP_MIN_MICROS } from './tiers.ts';

export type { Organization };

/** The project that every new organization starts with. */
export const DEFAULT_PROJECT_NAME = 'Default';

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
export function insertOrganization(context: AccountContext, given: NewOrganization): CreatedOrganization {
  const { db, clock, identifiers } = context;
  const created_at_ms = clock.now_ms();
  const id = identifiers.id('organization');
  const default_project_id = identifiers.id('project');
  const { name, owner_user_id, personal } = given;
  db.insert(organizations)
    .values({ id, name, personal_user_id: personal ? owner_user_id : null, created_at_ms })
    .run();
  db.insert(projects)
    .values({ id: default_project_id, organization_id: id, name: DEFAULT_PROJECT_NAME, created_at_ms })
    .run();
  if (owner_user_id !== null) {
    db.insert(members)
      .values({ organization_id: id, user_id: owner_user_id, role: 'owner', created_at_ms })
      .run();
  }
  return { id, name, default_project_id };
}

/**
 * Creates an organization with its Default project. A user becomes its owner. The operator names its owner; without
 * one it has no member until the operator adds its first owner. Throws `invalid_name`, `permission_denied`.
 */
export function createOrganization(
  context: AccountContext,
  actor: Actor,
  given: { readonly name: string; readonly owner_user_id?: string },
): CreatedOrganization {
  const name = checkedName(given.name);
  if (given.owner_user_id !== undefined) requireOperator(actor);
  const owner_user_id = given.owner_user_id ?? userIdOf(actor);
  return transact(context.db, () => insertOrganization(context, { name, owner_user_id, personal: false }));
}

/** The organizations that the actor may see (the operator: all), oldest first. */
export function listOrganizations(context: AccountContext, actor: Actor): Organization[] {
  const { db } = context;
  if (actor.kind === 'operator') {
    return db
      .select()
      .from(organizations)
      .orderBy(asc(organizations.created_at_ms), asc(organizations.id))
      .all();
  }
  return db
    .select(getTableColumns(organizations))
    .from(organizations)
    .innerJoin(members, eq(members.organization_id, organizations.id))
    .where(eq(members.user_id, actor.user_id))
    .orderBy(asc(organizations.created_at_ms), asc(organizations.id))
    .all();
}

/** One organization. Throws `not_found`. */
export function getOrganization(
  context: AccountContext,
  actor: Actor,
  organization_id: string,
): Organization {
  requirePermission(context.db, actor, organization_id, 'see');
  return readNow(context, organization_id);
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

/** Renames an organization (owners and admins). Throws `invalid_name`, `not_found`, `permission_denied`. */
export function renameOrganization(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly name: string },
): Organization {
  const name = checkedName(given.name);
  return transact(context.db, () => {
    requirePermission(context.db, actor, given.organization_id, 'manage_organization');
    context.db.update(organizations).set({ name }).where(eq(organizations.id, given.organization_id)).run();
    return readNow(context, given.organization_id);
  });
}

/** What the operator can set for one organization. A missing field stays as it is; null puts the tier's value back. */
export interface TierSettings {
  /** A tier below which the organization does not fall. */
  readonly minimum_tier?: number | null;
  readonly requests_per_minute?: number | null;
  readonly tokens_per_minute?: number | null;
  readonly questions_per_request?: number | null;
  readonly top_up_max_micros?: number | null;
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
 * Returns the organization as it is then. Throws `permission_denied`, `not_found`, `invalid_limit`.
 */
export function setTierSettings(
  context: AccountContext,
  actor: Actor,
  organization_id: string,
  settings: TierSettings,
): Organization {
  requireOperator(actor);
  checkSettings(settings);
  const { db, clock } = context;
  return transact(db, () => {
    readNow(context, organization_id);
    if (Object.values(settings).some((value) => value !== undefined)) {
      db.update(organizations).set(settings).where(eq(organizations.id, organization_id)).run();
      recalculateTier(db, organization_id, 'operator', clock.now_ms());
    }
    return readNow(context, organization_id);
  });
}
