import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { rollUpAuditLog } from '../../src/audit-log/roll-up.ts';
import type { NewAuditLogEntry, StoredAuditLogEntry } from '../../src/store/audit-log-records.ts';
import type { Store } from '../../src/store/store.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { propertySeed } from '../ledger/support.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { newOrganization, newUser } from '../store/rows.ts';

const FIRST_DAY_MS = Date.UTC(2026, 0, 1);
const DAYS = 3;
/** In the middle of the last day, which has not ended then. */
const BEFORE_MS = FIRST_DAY_MS + (DAYS - 1) * DAY_MS + DAY_MS / 2;

const ACTS = [
  { action: 'key.create', object_kind: 'key' },
  { action: 'organization.rename', object_kind: 'organization' },
  { action: 'top_up.start', object_kind: 'payment' },
  { action: 'payment_event.assign', object_kind: 'payment_event' },
  { action: 'model.price', object_kind: 'model' },
] as const;

const arbitraryEntry: fc.Arbitrary<NewAuditLogEntry> = fc
  .record({
    organization_id: fc.constantFrom('org', 'other', null),
    user_id: fc.constantFrom('ada', 'bob', null),
    act: fc.constantFrom(...ACTS),
    object_id: fc.constantFrom('one', 'two', null),
    by_operator: fc.boolean(),
    day: fc.nat({ max: DAYS - 1 }),
    time_ms: fc.nat({ max: DAY_MS - 1 }),
  })
  .map(({ act, by_operator, day, time_ms, ...rest }) => ({
    ...rest,
    ...act,
    detail: by_operator ? { name: 'a name', by_operator } : { name: 'a name' },
    created_at_ms: FIRST_DAY_MS + day * DAY_MS + time_ms,
  }));

const isAboutMoney = ({ object_kind }: NewAuditLogEntry) => !['key', 'organization'].includes(object_kind);
const dayOf = ({ created_at_ms }: NewAuditLogEntry) => Math.floor((created_at_ms - FIRST_DAY_MS) / DAY_MS);

/** How often each act was done, by everything that a roll-up keeps apart. */
function counted(entries: readonly NewAuditLogEntry[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const entry of entries) {
    const { organization_id, user_id, action, detail } = entry;
    const key = [organization_id, user_id, action, dayOf(entry), detail.by_operator === true].join(' ');
    counts[key] = (counts[key] ?? 0) + (typeof detail.times === 'number' ? detail.times : 1);
  }
  return counts;
}

describe.each(DATABASES)('the roll-up of the audit log in $name', ({ open }) => {
  let database: OpenDatabase;
  let store: Store;
  beforeEach(async () => {
    database = await open();
    ({ store } = database);
    for (const id of ['ada', 'bob']) await store.accounts.insertUser(newUser(id));
    for (const id of ['org', 'other']) await store.accounts.insertOrganization(newOrganization(id));
  });
  afterEach(() => database.close());

  const insert = (entries: readonly NewAuditLogEntry[]) =>
    store.transaction(async ({ audit_log }) => {
      for (const entry of entries) await audit_log.insertEntry(entry);
    });
  const list = async (): Promise<readonly StoredAuditLogEntry[]> => {
    const listed = [];
    for (const organization_id of ['org', 'other', null]) {
      const filter = { organization_id, before_id: null, action: null, limit: 1_000 };
      listed.push(...(await store.audit_log.listEntries(filter)));
    }
    return listed.sort((one, other) => one.id - other.id);
  };

  test('no act is lost: what one did in a way on a day becomes one entry, and money and newer days stay', async () => {
    const history = fc.array(arbitraryEntry, { minLength: 20, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(history, fc.integer({ min: 1, max: 70 }), async (unordered, batch_entries) => {
        const entries = unordered.toSorted((one, other) => one.created_at_ms - other.created_at_ms);
        await database.run('DELETE FROM trail_entries');
        await insert(entries);
        const before = await list();
        const isKept = (entry: NewAuditLogEntry) => isAboutMoney(entry) || dayOf(entry) === DAYS - 1;
        const removed = await rollUpAuditLog(store, { before_ms: BEFORE_MS, batch_entries });
        const after = await list();
        expect(counted(after)).toEqual(counted(before));
        expect(after.filter(isKept)).toEqual(before.filter(isKept));
        const rest = after.filter((entry) => !isKept(entry));
        expect(rest).toHaveLength(Object.keys(counted(rest)).length);
        expect(removed).toBe(before.length - after.length);
        // Once more, and in other batches, changes nothing.
        expect(await rollUpAuditLog(store, { before_ms: BEFORE_MS })).toBe(0);
        expect(await list()).toEqual([...after]);
      }),
      { seed: propertySeed('roll-up of the audit log'), numRuns: 20 },
    );
  }, 120_000);

  const act = (values: Partial<NewAuditLogEntry> = {}): NewAuditLogEntry => ({
    organization_id: 'org',
    user_id: 'ada',
    action: 'key.create',
    object_kind: 'key',
    object_id: 'one',
    detail: { name: 'a name' },
    created_at_ms: FIRST_DAY_MS,
    ...values,
  });

  test('a single act keeps its detail, and more of one object keep the object', async () => {
    const single = act({ user_id: 'bob' });
    const renames = { action: 'organization.rename', object_kind: 'organization' };
    await insert([single, act(), act({ object_id: 'two' }), act(renames), act(renames)]);
    await rollUpAuditLog(store, { before_ms: BEFORE_MS });
    expect(await list()).toMatchObject([
      single,
      { user_id: 'ada', object_id: null, detail: { times: 2 } },
      { ...renames, object_id: 'one', detail: { times: 2 } },
    ]);
  });

  test('acts that a stepped clock has put out of order are counted too, by the next run at the latest', async () => {
    const days = [0, 0, 1, 1, 0, 0].map((day) => act({ created_at_ms: FIRST_DAY_MS + day * DAY_MS }));
    await insert(days);
    const before = counted(await list());
    await rollUpAuditLog(store, { before_ms: BEFORE_MS, batch_entries: 2 });
    expect(counted(await list())).toEqual(before);
    await rollUpAuditLog(store, { before_ms: BEFORE_MS });
    expect(await list()).toMatchObject([{ detail: { times: 4 } }, { detail: { times: 2 } }]);
  });

  test('a run that is cut anywhere has lost no act, and the next one goes on', async () => {
    await insert(Array.from({ length: 40 }, () => act()));
    const failing = (after: number): Pick<Store, 'snapshot' | 'transaction'> => {
      let transactions = 0;
      return {
        snapshot: (work) => store.snapshot(work),
        transaction: (work) =>
          store.transaction(async (records) => {
            const result = await work(records);
            transactions += 1;
            if (transactions > after) throw new Error('cut before the commit');
            return result;
          }),
      };
    };
    for (const after of [0, 1, 2]) {
      const before = await list();
      const run = rollUpAuditLog(failing(after), { before_ms: BEFORE_MS, batch_entries: 5 });
      await expect(run).rejects.toThrow('cut before the commit');
      expect(counted(await list())).toEqual(counted(before));
      expect((await list()).length < before.length).toBe(after > 0);
    }
    let batches = 0;
    const isStopped = () => {
      batches += 1;
      return batches > 2;
    };
    await rollUpAuditLog(store, { before_ms: BEFORE_MS, batch_entries: 5, isStopped });
    expect((await list()).length).toBeGreaterThan(1);
    await rollUpAuditLog(store, { before_ms: BEFORE_MS, batch_entries: 5 });
    expect(await list()).toMatchObject([{ object_id: 'one', detail: { times: 40 } }]);
  });
});
