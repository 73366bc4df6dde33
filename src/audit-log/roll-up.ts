import type { NewAuditLogEntry, RolledUpEntries } from '../store/audit-log-records.ts';
import type { Store } from '../store/store.ts';
import { DAY_MS } from '../time/clock.ts';
import { BY_OPERATOR } from './record.ts';

/** The days after which acts are rolled up, unless configured. */
export const AUDIT_LOG_RETENTION_DAYS = 365;

/**
 * The entries of one read and one transaction: few enough that a running server waits only some milliseconds.
 */
const BATCH_ENTRIES = 500;

/** The key of the detail with the number of acts that an entry stands for. */
export const TIMES = 'times';

/** Acts about money are never rolled up. */
const MONEY_OBJECTS: readonly string[] = ['payment', 'payment_event'];
const MONEY_ACTIONS: readonly string[] = ['model.price'];

type Entry = NewAuditLogEntry & { readonly id: number };

/** The entry that stands for its whole group: the first one. */
interface Group {
  readonly id: number;
  readonly day: number;
  readonly by_operator: boolean;
  /** Null where the acts were on different objects. */
  object_id: string | null;
  times: number;
}

/** The bounds of a roll-up. */
export interface AuditLogRollUp {
  /** The end: only UTC days that have ended before this time are rolled up. */
  readonly before_ms: number;
  /** Called between two batches; true stops the roll-up. */
  readonly isStopped?: () => boolean;
  readonly batch_entries?: number;
}

/**
 * Merges a user's acts of one kind in an organization on a UTC day into one entry, except those about money.
 * Each batch is one transaction, so a stop at any instant loses no act. Returns the number of removed
 * entries. Only one process may run it at a time.
 */
export async function rollUpAuditLog(
  store: Pick<Store, 'snapshot' | 'transaction'>,
  { before_ms, isStopped = () => false, batch_entries = BATCH_ENTRIES }: AuditLogRollUp,
): Promise<number> {
  const first_kept_day = Math.floor(before_ms / DAY_MS);
  const groups = new Map<string, Group>();
  let after_id = 0;
  let removed = 0;
  while (!isStopped()) {
    const started_ms = performance.now();
    const entries = await store.snapshot(({ audit_log }) => audit_log.entriesAfter(after_id, batch_entries));
    const old = entries.filter(({ created_at_ms }) => dayOf(created_at_ms) < first_kept_day);
    const batch = rolledUp(old, groups);
    if (batch.removed.length > 0) await store.transaction(({ audit_log }) => audit_log.rollUpEntries(batch));
    removed += batch.removed.length;
    // Entries are in the order of time unless the clock was stepped. Entries that a step hides are rolled up
    // the next time.
    if (entries.length < batch_entries || old.length === 0) break;
    after_id = entries.at(-1)?.id ?? after_id;
    const day = dayOf(old.at(-1)?.created_at_ms ?? 0);
    for (const [key, group] of groups) if (group.day < day) groups.delete(key);
    // The server gets the write lock at least half of the time.
    await Bun.sleep(performance.now() - started_ms);
  }
  return removed;
}

function dayOf(time_ms: number): number {
  return Math.floor(time_ms / DAY_MS);
}

/** Adds the entries to their groups, and returns the resulting changes. */
function rolledUp(entries: readonly Entry[], groups: Map<string, Group>): RolledUpEntries {
  const changed = new Set<Group>();
  const removed: number[] = [];
  for (const entry of entries) {
    const { id, organization_id, user_id, action, object_kind, object_id, created_at_ms, detail } = entry;
    if (MONEY_OBJECTS.includes(object_kind) || MONEY_ACTIONS.includes(action)) continue;
    const day = dayOf(created_at_ms);
    const by_operator = detail[BY_OPERATOR] === true;
    const times = typeof detail[TIMES] === 'number' ? detail[TIMES] : 1;
    const key = JSON.stringify([organization_id, user_id, action, day, by_operator]);
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, { id, day, by_operator, object_id, times });
      continue;
    }
    group.times += times;
    if (group.object_id !== object_id) group.object_id = null;
    changed.add(group);
    removed.push(id);
  }
  const kept = Array.from(changed, ({ id, object_id, times, by_operator }) => ({
    id,
    object_id,
    detail: { [TIMES]: times, ...(by_operator ? { [BY_OPERATOR]: true } : {}) },
  }));
  return { kept, removed };
}
