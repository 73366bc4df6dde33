import { WINDOW_MS } from '../limits/rate-status.ts';
import type { RequestInLedger, RollUpRecords } from '../store/roll-up-records.ts';
import type { Store } from '../store/store.ts';
import { dayOf } from '../time/days.ts';
import { monthOf, startOfMonth_ms } from '../time/month.ts';
import { DayTotals } from './day-totals.ts';
import { PruneRefused } from './prune-refused.ts';

/**
 * The requests that one transaction rolls up: few enough that a running server waits only some milliseconds.
 */
const BATCH_REQUESTS = 500;

/** The progress of a roll-up. */
export interface PruneProgress {
  readonly requests: number;
}

export interface PruneOptions {
  /** The end: requests that were admitted and have ended before this time are rolled up. */
  readonly before_ms: number;
  readonly now_ms: number;
  /** Called between two batches; true stops the roll-up. */
  readonly isStopped?: () => boolean;
  readonly onProgress?: (progress: PruneProgress) => void;
  readonly batch_requests?: number;
}

/**
 * Returns the latest end of a roll-up: the start of the UTC month, because its spend limits still count. In
 * the month's first minute it is the start of the rate windows, which is earlier.
 */
export function latestPrune_ms(now_ms: number): number {
  return Math.min(startOfMonth_ms(now_ms), now_ms - WINDOW_MS);
}

/** The store, and the audit that precedes a roll-up. */
export interface PruneParts {
  readonly store: Pick<Store, 'transaction'>;
  /** Continues the audit up to the newest ledger entry; returns false when it finds a violation. */
  readonly continueAudit: (now_ms: number) => boolean | Promise<boolean>;
}

/**
 * Replaces the usage rows of old requests, and their holds and charges, by totals of each UTC day. Payments,
 * balances and monthly spending stay. The audit runs first, up to the newest entry, and only audited entries
 * are replaced. Each batch is one transaction that verifies its totals: a stop at any instant loses nothing,
 * and a server may run beside it. Returns the totals of the roll-up. Throws `PruneRefused`, and `RangeError`
 * for a time after `latestPrune_ms`.
 */
export async function pruneUsage(
  { store, continueAudit }: PruneParts,
  options: PruneOptions,
): Promise<PruneProgress> {
  const { before_ms, now_ms, batch_requests = BATCH_REQUESTS } = options;
  if (before_ms > latestPrune_ms(now_ms)) throw new RangeError('usage of this month cannot be rolled up');
  if (!(await continueAudit(now_ms))) throw new PruneRefused('the audit found a violation');
  let requests = 0;
  for (const rollUp of [rollUpInLedger, rollUpOutsideLedger]) {
    let after = 0;
    while (!(options.isStopped?.() ?? false)) {
      const started_ms = performance.now();
      const batch = await store.transaction(({ usage }) =>
        rollUp(usage, { before_ms, after, batch_requests }),
      );
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
  /** The end of the earlier batches: an entry's id, or a time. */
  readonly after: number;
  readonly batch_requests: number;
}

interface Batch {
  readonly requests: number;
  readonly after: number;
  readonly is_last: boolean;
}

/** Rolls up the oldest requests with a hold after an entry. */
async function rollUpInLedger(
  records: RollUpRecords,
  { before_ms, after, batch_requests }: BatchOptions,
): Promise<Batch> {
  const found = await records.requestsInLedger(after, batch_requests);
  const settled = [];
  for (const request of found) {
    const { request_id, hold, end } = request;
    if (end === undefined || !isOld(request, before_ms)) continue;
    if (!isSound(request)) throw new PruneRefused(`request ${request_id} was not settled as its usage says`);
    const pair = { hold_entry_id: hold.entry_id, end_entry_id: end.entry_id };
    settled.push({ request_id, ...pair, day: dayOf(hold.at_ms) });
  }
  const totals = new DayTotals(records);
  await totals.takeEntries(settled);
  await totals.takeUsage(settled);
  await totals.write();
  // Entries are in the order of time unless the clock was stepped. Requests that a step hides are rolled up
  // the next time.
  const is_last = found.length < batch_requests || found.every(({ hold }) => hold.at_ms >= before_ms);
  return { requests: settled.length, after: found.at(-1)?.hold.entry_id ?? after, is_last };
}

/** Returns true if the request was admitted, and has ended, before that time. */
function isOld({ hold, end, usage }: RequestInLedger, before_ms: number): boolean {
  return (
    end !== undefined &&
    hold.at_ms < before_ms &&
    end.at_ms < before_ms &&
    (usage === undefined || usage.time_ms < before_ms)
  );
}

/**
 * Returns true if the end frees the whole hold, charges what the usage row says, and has the hold's project
 * and month.
 */
function isSound({ hold, end, usage }: RequestInLedger): boolean {
  if (end === undefined) return false;
  const belongs =
    end.organization_id === hold.organization_id &&
    end.project_id === hold.project_id &&
    end.month === hold.month &&
    hold.month === monthOf(hold.at_ms);
  if (!belongs || end.held_delta_micros !== -hold.held_delta_micros) return false;
  if (end.kind === 'release') return end.credit_delta_micros === 0 && usage?.status !== 200;
  return (
    usage?.status === 200 &&
    usage.cost_micros === -end.credit_delta_micros &&
    usage.organization_id === hold.organization_id &&
    usage.project_id === hold.project_id
  );
}

/** Rolls up the oldest failed requests from a time on, which have no ledger entries. */
async function rollUpOutsideLedger(
  records: RollUpRecords,
  { before_ms, after, batch_requests }: BatchOptions,
): Promise<Batch> {
  const found = await records.requestsOutsideLedger(after, before_ms, batch_requests);
  for (const { request_id, cost_micros } of found) {
    if (cost_micros !== 0) throw new PruneRefused(`request ${request_id} has a cost and no charge`);
  }
  const totals = new DayTotals(records);
  await totals.takeUsage(found.map(({ request_id, time_ms }) => ({ request_id, day: dayOf(time_ms) })));
  await totals.write();
  return {
    requests: found.length,
    after: found.at(-1)?.time_ms ?? after,
    is_last: found.length < batch_requests,
  };
}
