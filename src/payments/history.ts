import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requirePermission } from '../access/permissions.ts';
import type { TierChange } from '../store/account-records.ts';
import type { MovementLine, MovementReader } from '../store/movement-reader.ts';

/** A movement of credit. */
export interface MovementEntry
  extends Pick<MovementLine, 'amount_micros' | 'project_id' | 'payment_id' | 'balance_micros'> {
  /**
   * `refund_reversed` takes a refund back. `daily_charges` stands for all charges of a project on a UTC day that was
   * rolled up.
   */
  readonly kind: 'top_up' | 'refund' | 'refund_reversed' | 'charge' | 'daily_charges';
  readonly created_at_ms: number;
}

/** A change of tier. */
export interface TierChangeEntry
  extends Pick<TierChange, 'created_at_ms' | 'from_tier' | 'to_tier' | 'reason'> {
  readonly kind: 'tier_change';
}

/** One line of the credit history. */
export type HistoryEntry = MovementEntry | TierChangeEntry;

/**
 * Returns the newest credit movements and tier changes of an organization, newest first, at most `limit`.
 * Movements are top-ups, refunds, their reversals and charges; a hold moves no credit. Rolled-up charges count at their day's
 * end. Rejects with `not_found`.
 */
export async function creditHistory(
  { store, reader }: Pick<AccountContext, 'store'> & { readonly reader: MovementReader },
  actor: Actor,
  given: { readonly organization_id: string; readonly limit: number },
): Promise<HistoryEntry[]> {
  const { organization_id, limit } = given;
  const changes = await store.snapshot(async (records) => {
    await requirePermission(records, actor, organization_id, 'see');
    return await records.accounts.tierChanges(organization_id, limit);
  });
  // The movements are read after the changes, so that every change has the movement that caused it.
  const { items } = await reader.movementLines({ organization_id, charges_by: 'request', limit });
  return merge(items.map(movementEntry), changes).slice(0, limit);
}

function movementEntry(line: MovementLine): MovementEntry {
  const { at_ms, amount_micros, project_id, payment_id, balance_micros } = line;
  return {
    kind: kindOf(line),
    created_at_ms: at_ms,
    amount_micros,
    project_id,
    payment_id,
    balance_micros,
  };
}

function kindOf({ kind, refunds_payment_id }: MovementLine): MovementEntry['kind'] {
  if (kind === 'charges') return 'daily_charges';
  return kind === 'top_up' && refunds_payment_id !== null ? 'refund_reversed' : kind;
}

/** Merges both lists, newest first. Each keeps its own order, and a tier change comes after its cause. */
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
