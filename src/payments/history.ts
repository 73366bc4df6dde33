import { and, desc, eq, ne, sql } from 'drizzle-orm';
import { ledgerDays, ledgerEntries } from '../../db/sqlite/schema.ts';
import type { TierChange } from '../accounts/account-records.ts';
import type { Actor } from '../accounts/actor.ts';
import { listTierChanges, readOrganization, requirePermission } from '../accounts/synchronous.ts';
import { endOfDay_ms } from '../usage/days.ts';
import type { CreditContext } from './credit.ts';

/** One line of the credit history: a movement of credit or a change of tier. */
export type HistoryEntry =
  | {
      /** `daily_charges` stands for all the charges of an old UTC day. */
      readonly kind: 'top_up' | 'refund' | 'charge' | 'daily_charges';
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
 * an organization, newest first, at most `limit` of them. Charges that were rolled up count as made at their day's end.
 * Throws `not_found`.
 */
export function creditHistory(
  context: CreditContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly limit: number },
): HistoryEntry[] {
  const { db } = context;
  requirePermission(db, actor, given.organization_id, 'see');
  const read = db.transaction(() => ({
    organization: readOrganization(context, given.organization_id),
    entries: db
      .select()
      .from(ledgerEntries)
      .where(
        and(
          eq(ledgerEntries.organization_id, given.organization_id),
          // As the index says it, so that it is used.
          sql`${ledgerEntries.kind} <> 'hold'`,
          ne(ledgerEntries.kind, 'release'),
        ),
      )
      .orderBy(desc(ledgerEntries.id))
      .limit(given.limit)
      .all(),
    days: db
      .select()
      .from(ledgerDays)
      .where(eq(ledgerDays.organization_id, given.organization_id))
      .orderBy(desc(ledgerDays.last_entry_id))
      .limit(given.limit)
      .all(),
    changes: listTierChanges(db, given.organization_id, given.limit),
  }));
  const newest = [...read.entries.flatMap(movedBy), ...read.days.map(movedInDay)]
    .sort((left, right) => right.entry_id - left.entry_id)
    .slice(0, given.limit);
  let balance_micros = read.organization.credit_micros;
  const movements = newest.map(({ entry_id: _, ...moved }): Movement => {
    const movement = { ...moved, balance_micros };
    balance_micros -= moved.amount_micros;
    return movement;
  });
  return merge(movements, read.changes).slice(0, given.limit);
}

/** A movement with its place in the ledger, before the balance is known. */
type Moved = Omit<Movement, 'balance_micros'> & { readonly entry_id: number };

function movedBy(entry: typeof ledgerEntries.$inferSelect): Moved[] {
  const { id, kind, created_at_ms, project_id, payment_id, credit_delta_micros } = entry;
  if (kind === 'hold' || kind === 'release') return [];
  return [{ entry_id: id, kind, created_at_ms, amount_micros: credit_delta_micros, project_id, payment_id }];
}

function movedInDay({
  last_entry_id,
  day,
  charged_micros,
  project_id,
}: typeof ledgerDays.$inferSelect): Moved {
  return {
    entry_id: last_entry_id,
    kind: 'daily_charges',
    created_at_ms: endOfDay_ms(day),
    amount_micros: -charged_micros,
    project_id,
    payment_id: null,
  };
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
