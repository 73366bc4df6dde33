import type { TierChange } from '../accounts/account-records.ts';
import type { Actor } from '../accounts/actor.ts';
import type { AccountContext } from '../accounts/context.ts';
import { readOrganization } from '../accounts/organizations.ts';
import { requirePermission } from '../accounts/permissions.ts';
import type { CreditMovement } from '../ledger/ledger-records.ts';

/** A movement of credit. */
export interface MovementEntry extends Omit<CreditMovement, 'entry_id'> {
  /** The balance after it, in micro-dollars. */
  readonly balance_micros: number;
}

/** A change of tier. */
export interface TierChangeEntry
  extends Pick<TierChange, 'created_at_ms' | 'from_tier' | 'to_tier' | 'reason'> {
  readonly kind: 'tier_change';
}

/** One line of the credit history. */
export type HistoryEntry = MovementEntry | TierChangeEntry;

/**
 * The newest movements of credit (top-ups, refunds, charges; what is only held does not move it) and tier changes of
 * an organization, newest first, at most `limit` of them. Charges that were rolled up count as made at their day's end.
 * Rejects with `not_found`.
 */
export async function creditHistory(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  given: { readonly organization_id: string; readonly limit: number },
): Promise<HistoryEntry[]> {
  const { organization_id, limit } = given;
  // One transaction: the balance belongs to the newest movement.
  const read = await store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'see');
    return {
      organization: await readOrganization(records, organization_id),
      movements: await records.ledger.movements(organization_id, limit),
      changes: await records.accounts.tierChanges(organization_id, limit),
    };
  });
  let balance_micros = read.organization.credit_micros;
  const movements = read.movements.map(({ entry_id: _, ...moved }): MovementEntry => {
    const movement = { ...moved, balance_micros };
    balance_micros -= moved.amount_micros;
    return movement;
  });
  return merge(movements, read.changes).slice(0, limit);
}

/** Both lists in one, newest first; each keeps its own order, and a tier change comes after what caused it. */
function merge(movements: readonly MovementEntry[], changes: readonly TierChange[]): HistoryEntry[] {
  const merged: HistoryEntry[] = [];
  const waiting = [...changes];
  const takeChangesSince = (time_ms: number) => {
    while (waiting[0] !== undefined && waiting[0].created_at_ms >= time_ms) {
      const { created_at_ms, from_tier, to_tier, reason } = waiting[0];
      merged.push({ kind: 'tier_change', created_at_ms, from_tier, to_tier, reason });
      waiting.shift();
    }
  };
  for (const movement of movements) {
    takeChangesSince(movement.created_at_ms);
    merged.push(movement);
  }
  takeChangesSince(Number.NEGATIVE_INFINITY);
  return merged;
}
