// For the services whose SQL has not moved to `db/sqlite/` yet: the same rules, on the connection itself.
import { and, desc, eq } from 'drizzle-orm';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { members, organizations, tierChanges } from '../../db/sqlite/schema.ts';
import type { Organization, TierChange, TierChangeReason } from './account-records.ts';
import type { Actor } from './actor.ts';
import { AccountError } from './errors.ts';
import { allows, type Permission, type Role } from './roles.ts';
import { tierInForce, tierReached } from './tiers.ts';

/** The role of a user in an organization; null for one who is no member. */
export function roleOf(db: Db, organization_id: string, user_id: string): Role | null {
  const member = db
    .select({ role: members.role })
    .from(members)
    .where(and(eq(members.organization_id, organization_id), eq(members.user_id, user_id)))
    .get();
  return member?.role ?? null;
}

/** Whether the actor may do this in the organization; a user who is no member may do nothing. */
export function permits(db: Db, actor: Actor, organization_id: string, permission: Permission): boolean {
  if (actor.kind === 'operator') return true;
  const role = roleOf(db, organization_id, actor.user_id);
  return role !== null && allows(role, permission);
}

/**
 * Throws `not_found` when there is no such organization, or the actor is no member and shall not learn that there is
 * one, and `permission_denied` when the actor's role does not allow it.
 */
export function requirePermission(
  db: Db,
  actor: Actor,
  organization_id: string,
  permission: Permission,
): void {
  const exists = db
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, organization_id))
    .get();
  if (exists === undefined || !permits(db, actor, organization_id, 'see')) {
    throw new AccountError('not_found', 'There is no such organization.');
  }
  if (!permits(db, actor, organization_id, permission)) throw new AccountError('permission_denied');
}

/** The tier to write down for an organization now. Only a refund or the operator can lower it. */
function tierDue(organization: Organization, reason: TierChangeReason, now_ms: number): number {
  const lowers = reason === 'refund' || reason === 'operator';
  return lowers ? tierReached(organization, now_ms) : tierInForce(organization, now_ms);
}

function recalculate(db: Db, organization: Organization, reason: TierChangeReason, now_ms: number): void {
  const to_tier = tierDue(organization, reason, now_ms);
  if (to_tier === organization.tier) return;
  db.update(organizations).set({ tier: to_tier }).where(eq(organizations.id, organization.id)).run();
  db.insert(tierChanges)
    .values({
      organization_id: organization.id,
      from_tier: organization.tier,
      to_tier,
      reason,
      created_at_ms: now_ms,
    })
    .run();
}

/** Sets the tier of one organization anew and notes a change with its reason. To be called inside a transaction. */
export function recalculateTier(
  db: Db,
  organization_id: string,
  reason: TierChangeReason,
  now_ms: number,
): void {
  const organization = db.select().from(organizations).where(eq(organizations.id, organization_id)).get();
  if (organization !== undefined) recalculate(db, organization, reason, now_ms);
}

/** One organization, whoever asks: for services that have checked the actor. Throws `not_found`. */
export function readOrganization({ db }: { readonly db: Db }, organization_id: string): Organization {
  const organization = db.select().from(organizations).where(eq(organizations.id, organization_id)).get();
  if (organization === undefined) throw new AccountError('not_found', 'There is no such organization.');
  return organization;
}

/** Lifts every organization that time has brought to its next tier; for the start and an hourly job. */
export function recalculateTiers(db: Db, now_ms: number): void {
  transact(db, () => {
    for (const organization of db.select().from(organizations).all()) {
      recalculate(db, organization, 'time', now_ms);
    }
  });
}

/** The newest tier changes of an organization, newest first. */
export function listTierChanges(db: Db, organization_id: string, limit: number): TierChange[] {
  return db
    .select()
    .from(tierChanges)
    .where(eq(tierChanges.organization_id, organization_id))
    .orderBy(desc(tierChanges.id))
    .limit(limit)
    .all();
}
