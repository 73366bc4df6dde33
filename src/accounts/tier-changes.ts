import { desc, eq } from 'drizzle-orm';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { organizations, tierChanges } from '../../db/sqlite/schema.ts';
import { tierInForce, tierReached } from './tiers.ts';

export type TierChange = typeof tierChanges.$inferSelect;
type Organization = typeof organizations.$inferSelect;

/** The tier to write down for an organization now. Only a refund or the operator can lower it. */
function tierDue(organization: Organization, reason: TierChange['reason'], now_ms: number): number {
  const lowers = reason === 'refund' || reason === 'operator';
  return lowers ? tierReached(organization, now_ms) : tierInForce(organization, now_ms);
}

function recalculate(db: Db, organization: Organization, reason: TierChange['reason'], now_ms: number): void {
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
  reason: TierChange['reason'],
  now_ms: number,
): void {
  const organization = db.select().from(organizations).where(eq(organizations.id, organization_id)).get();
  if (organization !== undefined) recalculate(db, organization, reason, now_ms);
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
