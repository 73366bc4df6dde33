import { raiseAlert } from '../alerts/raise.ts';
import { tierInForce, tierReached } from '../contract/tiers.ts';
import type { Organization, TierChangeReason } from '../store/account-records.ts';
import type { Records, Store } from '../store/store.ts';

/** Returns the tier to store for an organization now. Only a refund or the operator can lower it. */
function tierDue(organization: Organization, reason: TierChangeReason, now_ms: number): number {
  const lowers = reason === 'refund' || reason === 'operator';
  return lowers ? tierReached(organization, now_ms) : tierInForce(organization, now_ms);
}

async function recalculate(
  records: Pick<Records, 'accounts' | 'alerts'>,
  organization: Organization,
  reason: TierChangeReason,
  now_ms: number,
): Promise<void> {
  const { id, tier: from_tier } = organization;
  const to_tier = tierDue(organization, reason, now_ms);
  if (to_tier === from_tier) return;
  const { accounts } = records;
  await accounts.writeTier(id, to_tier);
  await accounts.insertTierChange({ organization_id: id, from_tier, to_tier, reason, created_at_ms: now_ms });
  const alert = { kind: 'tier_changed', organization_id: id, subject_id: id, from_tier, to_tier } as const;
  await raiseAlert(records, alert, now_ms);
}

/**
 * Recalculates the tier of one organization and stores a change with its reason and its alert. To be called inside a
 * transaction.
 */
export async function recalculateTier(
  records: Pick<Records, 'accounts' | 'alerts'>,
  organization_id: string,
  reason: TierChangeReason,
  now_ms: number,
): Promise<void> {
  const organization = await records.accounts.findOrganization(organization_id);
  if (organization !== undefined) await recalculate(records, organization, reason, now_ms);
}

/**
 * Raises every organization that has reached its next tier by time; for the start and an hourly job. Most organizations
 * have never paid, and reading them all would stop the event loop.
 */
export function recalculateTiers(store: Store, now_ms: number): Promise<void> {
  return store.transaction(async (records) => {
    for (const organization of await records.accounts.paidOrganizations()) {
      await recalculate(records, organization, 'time', now_ms);
    }
  });
}
