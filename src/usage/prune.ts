import { continueAudit } from '../../db/sqlite/audit.ts';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { WINDOW_MS } from '../limits/rate-limiter.ts';
import { dayOf } from './days.ts';

/** Requests that one transaction rolls up: few enough that a running server waits some milliseconds at most. */
const BATCH_REQUESTS = 500;

/** Usage and ledger that the audit finds wrong are kept as they are. */
export class PruneRefused extends Error {
  override readonly name = 'PruneRefused';
}

/** What was rolled up so far. */
export interface PruneProgress {
  readonly requests: number;
}

export interface PruneOptions {
  /** Requests that were admitted, and ended, before this time are rolled up. */
  readonly before_ms: number;
  readonly now_ms: number;
  /** Asked between two batches: whether to stop there. */
  readonly isStopped?: () => boolean;
  readonly onProgress?: (progress: PruneProgress) => void;
  readonly batch_requests?: number;
}

/**
 * The latest time that usage may be rolled up to: the start of the UTC month, whose spend limits still count, and in
 * its first minute what is in the rate windows.
 */
export function latestPrune_ms(now_ms: number): number {
  const now = new Date(now_ms);
  return Math.min(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()), now_ms - WINDOW_MS);
}

/**
 * Replaces the usage rows of old requests, and their holds and charges, by totals of each UTC day (`usage_days`,
 * `ledger_days`). Payments stay, and every balance and month does. First the audit goes on to the newest entry; what it
 * has not checked is kept. Each batch is one transaction that verifies what it replaces, so a stop at any instant loses
 * nothing, and a server may run beside it. Returns what was rolled up. Throws `PruneRefused`, and `RangeError` for a
 * time after `latestPrune_ms`.
 */
export async function pruneUsage(db: Db, options: PruneOptions): Promise<PruneProgress> {
  const { before_ms, now_ms, batch_requests = BATCH_REQUESTS } = options;
  if (before_ms > latestPrune_ms(now_ms)) throw new RangeError('usage of this month cannot be rolled up');
  if (!continueAudit(db, { now_ms }).ok) throw new PruneRefused('the audit found a violation');
  let requests = 0;
  for (const rollUp of [rollUpSettled, rollUpUnsettled]) {
    let after = 0;
    while (!(options.isStopped?.() ?? false)) {
      const started_ms = performance.now();
      const batch = transact(db, () => rollUp(db, { before_ms, after, batch_requests }));
      requests += batch.requests;
      if (batch.requests > 0) options.onProgress?.({ requests });
      if (batch.is_last) break;
      after = batch.after;
      // The server gets the write lock at least half of the time.
      await Bun.sleep(performance.now() - started_ms);
    }
  }
  return { requests };
}

interface BatchOptions {
  readonly before_ms: number;
  /** Where earlier batches have come to: an entry's id, or a time. */
  readonly after: number;
  readonly batch_requests: number;
}

interface Batch {
  readonly requests: number;
  readonly after: number;
  readonly is_last: boolean;
}

/** A hold, its end and its usage row, as far as they are there. */
interface HeldRow {
  readonly hold_id: number;
  readonly end_id: number | null;
  readonly held_at_ms: number;
  readonly request_id: string;
  readonly is_old: 0 | 1;
  /** The end frees all, charges what the usage row says, and belongs to the same project and month. */
  readonly is_sound: 0 | 1;
}

/** The last entry that the audit has checked. */
const CHECKED = '(SELECT last_entry_id FROM audit_checkpoints)';

/** Rolls up requests that have a hold: the oldest ones after an entry. */
function rollUpSettled(db: Db, { before_ms, after, batch_requests }: BatchOptions): Batch {
  const rows = db.$client
    .query<HeldRow, Record<string, number>>(
      `SELECT hold.id AS hold_id, ended.id AS end_id, hold.created_at_ms AS held_at_ms, hold.request_id,
        hold.created_at_ms < $before_ms AND ended.created_at_ms < $before_ms
          AND ended.id <= ${CHECKED} AND coalesce(usage.time_ms, 0) < $before_ms AS is_old,
        ended.organization_id = hold.organization_id AND ended.project_id = hold.project_id
          AND ended.month = hold.month AND hold.month = strftime('%Y-%m', hold.created_at_ms / 1000, 'unixepoch')
          AND ended.held_delta_micros = -hold.held_delta_micros
          AND CASE ended.kind WHEN 'charge'
            THEN usage.status IS 200 AND usage.cost_micros = -ended.credit_delta_micros
              AND usage.organization_id = hold.organization_id AND usage.project_id = hold.project_id
            ELSE ended.credit_delta_micros = 0 AND usage.status IS NOT 200 END AS is_sound
      FROM ledger_entries AS hold
      LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id
      LEFT JOIN usage_records AS usage ON usage.request_id = hold.request_id
      WHERE hold.id > $after AND hold.id <= ${CHECKED} AND hold.kind = 'hold'
      ORDER BY hold.id LIMIT $batch_requests`,
    )
    .all({ before_ms, after, batch_requests });
  const totals = new DayTotals(db);
  let requests = 0;
  for (const { is_old, is_sound, hold_id, end_id, held_at_ms, request_id } of rows) {
    if (is_old !== 1 || end_id === null) continue;
    if (is_sound !== 1) throw new PruneRefused(`request ${request_id} was not settled as its usage says`);
    totals.takeEntries(hold_id, end_id, dayOf(held_at_ms));
    totals.takeUsage(request_id, dayOf(held_at_ms));
    requests += 1;
  }
  totals.write();
  // Entries are in the order of time, but for steps of the clock: what these hide is rolled up the next time.
  const is_last = rows.length < batch_requests || rows.every((row) => row.held_at_ms >= before_ms);
  return { requests, after: rows.at(-1)?.hold_id ?? after, is_last };
}

/** Rolls up failed requests, which the ledger does not know: the oldest ones from a time on. */
function rollUpUnsettled(db: Db, { before_ms, after, batch_requests }: BatchOptions): Batch {
  const rows = db.$client
    .query<{ request_id: string; time_ms: number; cost_micros: number }, Record<string, number>>(
      `SELECT request_id, time_ms, cost_micros FROM usage_records AS usage
      WHERE time_ms >= $after AND time_ms < $before_ms
        AND NOT EXISTS (SELECT 1 FROM ledger_entries WHERE ledger_entries.request_id = usage.request_id)
      ORDER BY time_ms LIMIT $batch_requests`,
    )
    .all({ before_ms, after, batch_requests });
  const totals = new DayTotals(db);
  for (const { request_id, time_ms, cost_micros } of rows) {
    if (cost_micros !== 0) throw new PruneRefused(`request ${request_id} has a cost and no charge`);
    totals.takeUsage(request_id, dayOf(time_ms));
  }
  totals.write();
  return {
    requests: rows.length,
    after: rows.at(-1)?.time_ms ?? after,
    is_last: rows.length < batch_requests,
  };
}

interface EntryRow {
  readonly id: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly kind: string;
  readonly credit_delta_micros: number;
  readonly held_delta_micros: number;
}

interface LedgerDay {
  readonly organization_id: string;
  readonly project_id: string;
  readonly day: string;
  last_entry_id: number;
  charges: number;
  charged_micros: number;
  held_micros: number;
}

/** What the usage of a day is grouped by. */
const USAGE_GROUP = [
  'organization_id',
  'project_id',
  'api_key_id',
  'model',
  'mode',
  'endpoint',
  'status',
] as const;
type UsageGroup = Readonly<Record<Exclude<(typeof USAGE_GROUP)[number], 'status'>, string>> & {
  readonly status: number;
};
type UsageAmounts = Record<'questions' | 'input_tokens' | 'cost_micros', number>;
type UsageDay = UsageGroup & UsageAmounts & { readonly day: string; requests: number };

/** What was taken away of the ledger and the usage in one transaction, and is written back as totals of days. */
class DayTotals {
  readonly #client: Db['$client'];
  readonly #ledger = new Map<string, LedgerDay>();
  readonly #usage = new Map<string, UsageDay>();

  constructor(db: Db) {
    this.#client = db.$client;
  }

  /** Deletes a hold and its end. */
  takeEntries(hold_id: number, end_id: number, day: string): void {
    const entries = this.#client
      .query<EntryRow, [number, number]>(
        `DELETE FROM ledger_entries WHERE id IN (?, ?)
        RETURNING id, organization_id, project_id, kind, credit_delta_micros, held_delta_micros`,
      )
      .all(hold_id, end_id);
    for (const entry of entries) {
      const { organization_id, project_id } = entry;
      const key = JSON.stringify([project_id, day]);
      const total = this.#ledger.get(key) ?? {
        organization_id,
        project_id,
        day,
        last_entry_id: 0,
        charges: 0,
        charged_micros: 0,
        held_micros: 0,
      };
      total.last_entry_id = Math.max(total.last_entry_id, entry.id);
      total.charges += entry.kind === 'charge' ? 1 : 0;
      total.charged_micros -= entry.credit_delta_micros;
      total.held_micros += entry.held_delta_micros;
      this.#ledger.set(key, total);
    }
  }

  /** Deletes the usage row of a request, if it has one. */
  takeUsage(request_id: string, day: string): void {
    const row = this.#client
      .query<UsageGroup & UsageAmounts, [string]>(
        `DELETE FROM usage_records WHERE request_id = ?
        RETURNING ${USAGE_GROUP.join(', ')}, questions, input_tokens, cost_micros`,
      )
      .get(request_id);
    if (row === null) return;
    const key = JSON.stringify([day, ...USAGE_GROUP.map((column) => row[column])]);
    const total = this.#usage.get(key);
    if (total === undefined) {
      this.#usage.set(key, { ...row, day, requests: 1 });
      return;
    }
    total.requests += 1;
    total.questions += row.questions;
    total.input_tokens += row.input_tokens;
    total.cost_micros += row.cost_micros;
  }

  /**
   * Adds the totals to those of the days, and verifies that the books say afterwards what they said before: no balance
   * moved, nothing was held, and the days' charges are what the days' usage cost. Throws `PruneRefused`.
   */
  write(): void {
    const before = this.#charged_micros();
    const writeLedgerDay = this.#client.query<never, Omit<LedgerDay, 'held_micros'>>(
      `INSERT INTO ledger_days (project_id, day, organization_id, last_entry_id, charges, charged_micros)
      VALUES ($project_id, $day, $organization_id, $last_entry_id, $charges, $charged_micros)
      ON CONFLICT DO UPDATE SET last_entry_id = max(last_entry_id, excluded.last_entry_id),
        charges = charges + excluded.charges, charged_micros = charged_micros + excluded.charged_micros`,
    );
    for (const { held_micros, ...day } of this.#ledger.values()) {
      if (held_micros !== 0)
        throw new PruneRefused(`${day.project_id} has a hold on ${day.day} that did not end`);
      if (day.charges > 0) writeLedgerDay.run(day);
    }
    const writeUsageDay = this.#client.query<never, UsageDay>(
      `INSERT INTO usage_days (day, ${USAGE_GROUP.join(', ')}, requests, questions, input_tokens, cost_micros)
      VALUES ($day, ${USAGE_GROUP.map((column) => `$${column}`).join(', ')}, $requests, $questions, $input_tokens,
        $cost_micros)
      ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
        questions = questions + excluded.questions, input_tokens = input_tokens + excluded.input_tokens,
        cost_micros = cost_micros + excluded.cost_micros`,
    );
    for (const day of this.#usage.values()) writeUsageDay.run(day);
    this.#verify(before);
  }

  #verify(before: ReadonlyMap<string, number>): void {
    const after = this.#charged_micros();
    for (const [key, { project_id, organization_id, day, charged_micros }] of this.#ledger) {
      const charged = after.get(key) ?? 0;
      if (charged - (before.get(key) ?? 0) !== charged_micros) {
        throw new PruneRefused(`the charges of ${project_id} on ${day} would not add up`);
      }
      const usage = this.#client
        .query<{ cost_micros: number }, [string, string, string]>(
          `SELECT coalesce(sum(cost_micros), 0) AS cost_micros FROM usage_days
          WHERE organization_id = ? AND day = ? AND project_id = ? AND status = 200`,
        )
        .get(organization_id, day, project_id);
      if (usage?.cost_micros !== charged) {
        throw new PruneRefused(`the usage of ${project_id} on ${day} would not cost what was charged`);
      }
    }
  }

  /** What the days that are written to say now. */
  #charged_micros(): Map<string, number> {
    const query = this.#client.query<{ charged_micros: number }, [string, string]>(
      'SELECT charged_micros FROM ledger_days WHERE project_id = ? AND day = ?',
    );
    return new Map(
      [...this.#ledger].map(([key, { project_id, day }]) => [
        key,
        query.get(project_id, day)?.charged_micros ?? 0,
      ]),
    );
  }
}
