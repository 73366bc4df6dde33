import { DAY_MS } from '../clock.ts';
import type { Store } from '../store.ts';
import { BY_OPERATOR } from './record.ts';
import type { NewTrailEntry, RolledUpEntries } from './trail-records.ts';

/** After how many days acts are rolled up, unless the operator says another time. */
export const AUDIT_LOG_RETENTION_DAYS = 365;

/** Entries that are read at once, and that one transaction changes: a server beside it waits some milliseconds. */
const BATCH_ENTRIES = 500;

/** The detail of an entry that says how many acts it stands for. */
export const TIMES = 'times';

/** Acts about money are kept as they are, however old. */
const MONEY_OBJECTS: readonly string[] = ['payment', 'payment_event'];
const MONEY_ACTIONS: readonly string[] = ['model.price'];

type Entry = NewTrailEntry & { readonly id: number };

/** The first entry of a group, which stays and stands for all of them. */
interface Group {
  readonly id: number;
  readonly day: number;
  readonly by_operator: boolean;
  /** Null where the acts were on different objects. */
  object_id: string | null;
  times: number;
}

/** What is rolled up, and how far. */
export interface TrailRollUp {
  /** Only UTC days that have ended before this time are rolled up. */
  readonly before_ms: number;
  /** Asked between two batches: whether to stop there. */
  readonly isStopped?: () => boolean;
  readonly batch_entries?: number;
}

/**
 * Makes one entry of all that a user did in the same way in an organization on a UTC day; what is about money stays. Each
 * batch is one transaction, so a stop at any instant loses no act. Returns how many entries are gone. To be run by one
 * process at a time.
 */
export async function rollUpTrail(
  store: Pick<Store, 'snapshot' | 'transaction'>,
  { before_ms, isStopped = () => false, batch_entries = BATCH_ENTRIES }: TrailRollUp,
): Promise<number> {
  const first_kept_day = Math.floor(before_ms / DAY_MS);
  const groups = new Map<string, Group>();
  let after_id = 0;
  let removed = 0;
  while (!isStopped()) {
    const started_ms = performance.now();
    const entries = await store.snapshot(({ trail }) => trail.entriesAfter(after_id, batch_entries));
    const old = entries.filter(({ created_at_ms }) => dayOf(created_at_ms) < first_kept_day);
    const batch = rolledUp(old, groups);
    if (batch.removed.length > 0) await store.transaction(({ trail }) => trail.rollUpEntries(batch));
    removed += batch.removed.length;
    // Entries are in the order of time unless the clock was stepped; what a step hides is rolled up the next time.
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

/** Puts the entries into their groups, and returns what changes by that. */
function rolledUp(entries: readonly Entry[], groups: Map<string, Group>): RolledUpEntries {
  const changed = new Set<Group>();
  const removed: number[] = [];
  for (const entry of entries) {
    if (isAboutMoney(entry)) continue;
    const { id, organization_id, user_id, action, object_id, created_at_ms, detail } = entry;
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

function isAboutMoney({ action, object_kind }: Entry): boolean {
  return MONEY_OBJECTS.includes(object_kind) || MONEY_ACTIONS.includes(action);
}
