import { and, desc, eq, inArray } from 'drizzle-orm';
import { ledgerEntries } from '../../db/schema.ts';
import type { Actor } from '../accounts/actor.ts';
import type { AccountContext } from '../accounts/context.ts';
import { getOrganization } from '../accounts/organizations.ts';
import { listTierChanges, type TierChange } from '../accounts/tier-changes.ts';

const MOVING_KINDS = ['top_up', 'refund', 'charge'] as const;

/** One line of the credit history: a movement of credit or a change of tier. */
export type HistoryEntry =
  | {
      readonly kind: (typeof MOVING_KINDS)[number];
      readonly created_at_ms: number;
      readonly amount_micros: number;
      /** The balance after it. */
      readonly balance_micros: number;
      readonly project_id: string | null;
      readonly payment_id: string | null;
    }
  | {
      readonly kind: 'tier_change';
      readonly created_at_ms: number;
      readonly from_tier: number;
      readonly to_tier: number;
      readonly reason: TierChange['reason'];
    };

type Movement = Extract<HistoryEntry, { amount_micros: number }>;

/**
 * The newest movements of credit (top-ups, refunds, charges; what is only held does not move it) and tier changes of
 * an organization, newest first, at most `limit` of them. Throws `not_found`.
 */
export function creditHistory(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly limit: number },
): HistoryEntry[] {
  const { db } = context;
  const read = db.transaction(() => ({
    organization: getOrganization(context, actor, given.organization_id),
    entries: db
      .select()
      .from(ledgerEntries)
      .where(
        and(
          eq(ledgerEntries.organization_id, given.organization_id),
          inArray(ledgerEntries.kind, MOVING_KINDS),
        ),
      )
      .orderBy(desc(ledgerEntries.id))
      .limit(given.limit)
      .all(),
    changes: listTierChanges(db, given.organization_id, given.limit),
  }));
  const movements: Movement[] = [];
  let balance_micros = read.organization.credit_micros;
  for (const entry of read.entries) {
    const { kind, created_at_ms, project_id, payment_id, credit_delta_micros } = entry;
    if (kind === 'hold' || kind === 'release') continue;
    movements.push({
      kind,
      created_at_ms,
      amount_micros: credit_delta_micros,
      balance_micros,
      project_id,
      payment_id,
    });
    balance_micros -= credit_delta_micros;
  }
  return merge(movements, read.changes).slice(0, given.limit);
}

/** Both lists in one, newest first; each keeps its own order, and a tier change comes after what caused it. */
function merge(movements: readonly Movement[], changes: readonly TierChange[]): HistoryEntry[] {
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
