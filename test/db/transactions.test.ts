import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, expect, test } from 'bun:test';
import fc from 'fast-check';
import { neverWait } from '../../db/sqlite/connection.ts';
import { GroupCommit, WriteQueueFull } from '../../db/sqlite/group-commit.ts';
import { users } from '../../db/sqlite/schema.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { TransactionEnded, TransactionStalled } from '../../db/sqlite/transactions.ts';
import { NestedTransaction, type Records } from '../../src/store/store.ts';
import { temporaryDatabase } from '../accounts/support.ts';
import { propertySeed } from '../ledger/support.ts';
import { turns } from '../support/event-loop.ts';
import { holdWriteLock } from '../support/write-lock.ts';

let file: ReturnType<typeof temporaryDatabase>;
let observer: Database;
let commits: GroupCommit;
let store: SqliteStore;

beforeEach(() => {
  file = temporaryDatabase();
  neverWait(file.db);
  observer = new Database(file.path, { readonly: true, strict: true });
  commits = new GroupCommit(file.db);
  store = new SqliteStore(file.db);
});

afterEach(() => {
  observer.close();
  file.remove();
});

const user = (id: string) => ({ id, email: id, name: id, created_at_ms: 0 });

/** The users that another connection sees: those that are committed. */
function committed(): string[] {
  return observer
    .query<{ id: string }, []>('SELECT id FROM users ORDER BY rowid')
    .all()
    .map(({ id }) => id);
}

/** A counter that loses a count when two transactions run at once: it is read, then written. */
async function increment({ accounts }: Records): Promise<number> {
  const before = Number((await accounts.findOrganization('counter'))?.name);
  await Promise.resolve();
  await accounts.renameOrganization('counter', `${before + 1}`);
  return before + 1;
}

function makeCounter(): Promise<void> {
  return store.accounts.insertOrganization({
    id: 'counter',
    name: '0',
    personal_user_id: null,
    created_at_ms: 0,
  });
}

test('concurrent transactions run one after the other, in the order in which they were asked for', async () => {
  await makeCounter();
  const counts = await Promise.all(Array.from({ length: 100 }, () => store.transaction(increment)));
  expect(counts).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  expect((await store.accounts.findOrganization('counter'))?.name).toBe('100');
});

test('a snapshot does not see what another process commits while it reads', async () => {
  await makeCounter();
  const name = async ({ accounts }: Records) => (await accounts.findOrganization('counter'))?.name;
  using other = new Database(file.path, { strict: true });
  const seen = await store.snapshot(async (records) => {
    const before = await name(records);
    other.run("UPDATE organizations SET name = '1' WHERE id = 'counter'");
    return [before, await name(records)];
  });
  expect(seen).toEqual(['0', '0']);
  expect(await store.snapshot(name)).toBe('1');
});

test('a transaction is on disk when it resolves, and is seen by nobody before', async () => {
  const result = await store.transaction(async ({ accounts }) => {
    await accounts.insertUser(user('a'));
    await accounts.insertUser(user('b'));
    expect(await accounts.findUser('a')).toEqual(user('a'));
    expect(committed()).toEqual([]);
    return 'done';
  });
  expect([result, committed()]).toEqual(['done', ['a', 'b']]);
});

test('work that rejects leaves nothing behind, and only it fails', async () => {
  const outcomes = await Promise.allSettled(
    ['a', 'b', 'c', 'd'].map((id) =>
      store.transaction(async ({ accounts }) => {
        await accounts.insertUser(user(id));
        if (id === 'b') throw new RangeError('wrong');
        if (id === 'c') await accounts.insertUser(user('a'));
      }),
    ),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: expect.any(RangeError) });
  expect(outcomes[2]).toMatchObject({ reason: { code: expect.stringContaining('SQLITE_CONSTRAINT') } });
  expect(committed()).toEqual(['a', 'd']);
});

test('a full database fails the transaction and writes nothing of it', async () => {
  const { page_count } = file.db.$client.query<{ page_count: number }, []>('PRAGMA page_count').get() ?? {
    page_count: 0,
  };
  file.db.$client.run(`PRAGMA max_page_count = ${page_count + 2}`);
  const fill = store.transaction(async ({ accounts }) => {
    await accounts.insertUser(user('first'));
    for (let number = 0; number < 500; number += 1) {
      // Also work that goes on after the failure writes nothing.
      await accounts.insertUser(user(`${number}_${'x'.repeat(200)}`)).catch((error: unknown) => {
        if (number === 499) throw error;
      });
    }
  });
  await expect(fill).rejects.toThrow();
  expect(committed()).toEqual([]);
  file.db.$client.run('PRAGMA max_page_count = 1000000');
  await store.transaction(({ accounts }) => accounts.insertUser(user('a')));
  expect(committed()).toEqual(['a']);
});

test('waits for the lock of another process while the event loop goes on', async () => {
  const lock = await holdWriteLock(file.directory);
  const settled: string[] = [];
  const insert = async (id: string) => {
    await store.transaction(({ accounts }) => accounts.insertUser(user(id)));
    settled.push(id);
  };
  const writes = ['a', 'b'].map(insert);
  await turns(20);
  writes.push(insert('c'));
  await turns(20);
  expect([settled, committed()]).toEqual([[], []]);
  expect(await store.accounts.findUser('a')).toBeUndefined();
  await lock.release();
  await Promise.all(writes);
  expect([settled, committed()]).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ]);
});

test('a lock that is kept beyond the deadline fails what waits, also a single write, and the next is written', async () => {
  const impatient = new SqliteStore(file.db, { lock_deadline_ms: 20 });
  const lock = await holdWriteLock(file.directory);
  const writes = await Promise.allSettled([
    impatient.transaction(({ accounts }) => accounts.insertUser(user('a'))),
    impatient.accounts.insertUser(user('b')),
  ]);
  const locked = { status: 'rejected' as const, reason: expect.objectContaining({ code: 'SQLITE_BUSY' }) };
  expect(writes).toEqual([locked, locked]);
  await lock.release();
  await impatient.accounts.insertUser(user('c'));
  expect(committed()).toEqual(['c']);
});

test('no more than so many transactions wait for a lock', async () => {
  const small = new SqliteStore(file.db, { waiting_max: 2 });
  const lock = await holdWriteLock(file.directory);
  const waiting = ['a', 'b'].map((id) => small.accounts.insertUser(user(id)));
  await turns(2);
  await expect(small.accounts.insertUser(user('c'))).rejects.toBeInstanceOf(WriteQueueFull);
  await lock.release();
  await Promise.all(waiting);
  expect(committed()).toEqual(['a', 'b']);
});

test('work that awaits something else is rolled back and told so, and what it still writes is refused', async () => {
  const late = Promise.withResolvers<void>();
  const after = Promise.withResolvers<PromiseSettledResult<unknown>[]>();
  const stalled = store.transaction(async ({ accounts }) => {
    await accounts.insertUser(user('a'));
    await late.promise;
    after.resolve(Promise.allSettled([accounts.insertUser(user('b')), accounts.findUser('a')]));
  });
  const next = store.transaction(({ accounts }) => accounts.insertUser(user('c')));
  await expect(stalled).rejects.toBeInstanceOf(TransactionStalled);
  await next;
  late.resolve();
  const ended = { status: 'rejected' as const, reason: expect.any(TransactionEnded) };
  expect(await after.promise).toEqual([ended, ended]);
  expect(committed()).toEqual(['c']);
});

test('a transaction inside another is an error, as are reads and writes past the records that it gives', async () => {
  const uses: (() => Promise<unknown>)[] = [
    () => store.transaction(({ accounts }) => accounts.insertUser(user('inner'))),
    () => store.accounts.insertUser(user('inner')),
    () => store.accounts.findUser('a'),
  ];
  for (const use of uses) {
    const outer = store.transaction(async ({ accounts }) => {
      await accounts.insertUser(user('outer'));
      await use();
    });
    await expect(outer).rejects.toBeInstanceOf(NestedTransaction);
  }
  await turns(2);
  expect(committed()).toEqual([]);
});

test('reads outside of an open transaction wait until it has ended: they never see what is rolled back', async () => {
  const reads: Promise<unknown>[] = [];
  const opened = Promise.withResolvers<void>();
  const read = opened.promise.then(() =>
    reads.push(store.accounts.findUser('a'), store.accounts.findUser('b')),
  );
  const outer = store.transaction(async ({ accounts }) => {
    await accounts.insertUser(user('a'));
    opened.resolve();
    await read;
    expect(reads).toHaveLength(2);
    throw new RangeError('wrong');
  });
  await expect(outer).rejects.toBeInstanceOf(RangeError);
  expect(await Promise.all(reads)).toEqual([undefined, undefined]);
});

test('a group commit that meets an open transaction waits for its end and is no part of it', async () => {
  const written: Promise<void>[] = [];
  const failing = store.transaction(async ({ accounts }) => {
    await accounts.insertUser(user('a'));
    written.push(commits.run(() => file.db.insert(users).values(user('b')).run()));
    commits.flush();
    throw new RangeError('wrong');
  });
  await expect(failing).rejects.toBeInstanceOf(RangeError);
  await Promise.all(written);
  expect(committed()).toEqual(['b']);
});

test('group commits and transactions at the same time lose no count', async () => {
  await makeCounter();
  const ROUNDS = 60;
  const inBatch = () =>
    commits.run(() => {
      file.db.$client.run("UPDATE organizations SET name = CAST(name AS INTEGER) + 1 WHERE id = 'counter'");
    });
  const all: Promise<boolean>[] = [];
  const ask = (write: Promise<unknown>) =>
    all.push(
      write.then(
        () => true,
        () => false,
      ),
    );
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const write of [store.transaction(increment), inBatch(), inBatch()]) ask(write);
    ask(
      store.transaction(async (records) => {
        await increment(records);
        commits.flush();
        throw new RangeError('wrong');
      }),
    );
    if (round % 7 === 0) await turns(1);
    if (round % 11 === 0) commits.flush();
  }
  const outcomes = await Promise.all(all);
  expect(outcomes.filter((is_written) => !is_written)).toHaveLength(ROUNDS);
  expect((await store.accounts.findOrganization('counter'))?.name).toBe(`${3 * ROUNDS}`);
});

test('in a random history of locks, transactions and group commits, what resolves is written and what rejects is not', async () => {
  const step = fc.constantFrom(
    'write',
    'write',
    'throw',
    'stall',
    'batch',
    'turn',
    'flush',
    'lock',
    'unlock',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const once = temporaryDatabase();
      neverWait(once.db);
      const bounds = { lock_deadline_ms: 5, waiting_max: 4 };
      const batches = new GroupCommit(once.db, bounds);
      const store = new SqliteStore(once.db, bounds);
      let locker: Database | undefined;
      const unlock = () => {
        locker?.run('ROLLBACK');
        locker?.close();
        locker = undefined;
      };
      const asked: Promise<string | null>[] = [];
      const ask = (id: string, write: Promise<unknown>) =>
        asked.push(
          write.then(
            () => id,
            () => null,
          ),
        );
      for (const [index, name] of steps.entries()) {
        const id = `${index}`;
        if (name === 'write' || name === 'throw' || name === 'stall') {
          const write = store.transaction(async ({ accounts }) => {
            await accounts.insertUser(user(id));
            if (name === 'throw') throw new RangeError('wrong');
            if (name === 'stall') await turns(2);
            await accounts.insertUser(user(`${id} too`));
          });
          ask(id, write);
        } else if (name === 'batch') {
          ask(
            id,
            batches.run(() => once.db.insert(users).values(user(id)).run()),
          );
        } else if (name === 'turn') await turns(1);
        else if (name === 'flush') batches.flush();
        else if (name === 'unlock') unlock();
        else if (locker === undefined) {
          // A stalled transaction can be open still: it has the lock itself.
          while (once.db.$client.inTransaction) await turns(1);
          const other = new Database(once.path, { strict: true });
          other.run('BEGIN IMMEDIATE');
          locker = other;
        }
      }
      const outcomes = await Promise.all(asked);
      unlock();
      const found = await store.accounts.allUsers();
      expect(
        found
          .map(({ id }) => id)
          .filter((id) => !id.endsWith(' too'))
          .sort(),
      ).toEqual(outcomes.filter((id) => id !== null).sort());
      once.remove();
    }),
    { numRuns: 40, seed: propertySeed('transactions') },
  );
});
