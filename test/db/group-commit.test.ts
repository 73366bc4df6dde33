import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { neverWait, openDatabase, transact } from '../../db/sqlite/connection.ts';
import { GroupCommit, WriteQueueFull } from '../../db/sqlite/group-commit.ts';
import { users } from '../../db/sqlite/schema.ts';
import { propertySeed, TemporaryDatabase } from '../ledger/support.ts';
import { turns } from '../support/event-loop.ts';

class Users extends TemporaryDatabase {
  readonly commits = new GroupCommit(this.db);
  readonly observer = new Database(this.path, { readonly: true, strict: true });

  insert(id: string): void {
    this.db.insert(users).values({ id, email: id, name: id, created_at_ms: 0 }).run();
  }

  /** The users that another connection sees: those that are committed. */
  committed(): string[] {
    return this.observer
      .query<{ id: string }, []>('SELECT id FROM users ORDER BY rowid')
      .all()
      .map(({ id }) => id);
  }

  override [Symbol.dispose](): void {
    this.observer.close();
    super[Symbol.dispose]();
  }
}

const NAMES = ['a', 'b', 'c', 'd'];

test('the writes of a turn become visible together, in order, before any caller goes on', async () => {
  using file = new Users();
  const seen: string[][] = [];
  await Promise.all(
    NAMES.map(async (name) => {
      const answer = await file.commits.run(() => {
        file.insert(name);
        expect(file.committed()).toEqual([]);
        return name;
      });
      expect(answer).toBe(name);
      seen.push(file.committed());
    }),
  );
  expect(seen).toEqual(NAMES.map(() => NAMES));
});

test('work that throws fails alone and leaves nothing behind', async () => {
  using file = new Users();
  const outcomes = await Promise.allSettled(
    NAMES.map((name) =>
      file.commits.run(() => {
        file.insert(name);
        if (name === 'b') throw new RangeError('wrong');
        if (name === 'c') file.insert('a');
      }),
    ),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: expect.any(RangeError) });
  expect(outcomes[2]).toMatchObject({ reason: { code: expect.stringContaining('SQLITE_CONSTRAINT') } });
  expect(file.committed()).toEqual(['a', 'd']);
});

/** Takes the write lock, as another process would, until the returned function is called. */
function lock(file: Users): () => void {
  neverWait(file.db);
  const other = new Database(file.path, { strict: true });
  other.run('BEGIN IMMEDIATE');
  return () => {
    other.run('ROLLBACK');
    other.close();
  };
}

test('writes wait for a lock of another process while the event loop goes on, later ones with them, and keep their order', async () => {
  using file = new Users();
  const unlock = lock(file);
  const settled: string[] = [];
  const insert = async (name: string) => {
    await file.commits.run(() => file.insert(name));
    settled.push(name);
  };
  const writes = NAMES.map(insert);
  await turns(20);
  writes.push(insert('e'));
  await turns(20);
  expect([settled, file.committed()]).toEqual([[], []]);
  unlock();
  await Promise.all(writes);
  expect([settled, file.committed()]).toEqual([
    [...NAMES, 'e'],
    [...NAMES, 'e'],
  ]);
});

test('a lock that is kept beyond the deadline fails every caller, and the next batch is written', async () => {
  using file = new Users();
  const commits = new GroupCommit(file.db, { lock_deadline_ms: 20 });
  const unlock = lock(file);
  const locked = await Promise.allSettled(NAMES.map((name) => commits.run(() => file.insert(name))));
  expect(locked).toEqual(
    NAMES.map(() => ({ status: 'rejected', reason: expect.objectContaining({ code: 'SQLITE_BUSY' }) })),
  );
  unlock();
  await Promise.all(NAMES.map((name) => commits.run(() => file.insert(name))));
  expect(file.committed()).toEqual(NAMES);
});

test('no more than so many writes wait for a lock; those that end earlier work are not counted out', async () => {
  using file = new Users();
  const commits = new GroupCommit(file.db, { waiting_max: NAMES.length });
  const unlock = lock(file);
  const waiting = NAMES.map((name) => commits.run(() => file.insert(name)));
  // In the same turn nothing has met the lock yet: a large batch is none that waits.
  waiting.push(commits.run(() => file.insert('e')));
  await turns(2);
  await expect(commits.run(() => file.insert('f'))).rejects.toBeInstanceOf(WriteQueueFull);
  waiting.push(commits.runEvenIfFull(() => file.insert('g')));
  unlock();
  await Promise.all(waiting);
  expect(file.committed()).toEqual([...NAMES, 'e', 'g']);
  await commits.run(() => file.insert('h'));
  expect(file.committed()).toEqual([...NAMES, 'e', 'g', 'h']);
});

test('in a random history of locks and writes, what resolves is written in order and what rejects is not', async () => {
  const step = fc.constantFrom('write', 'write', 'throw', 'turn', 'flush', 'lock', 'unlock');
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      using file = new Users();
      const commits = new GroupCommit(file.db, { lock_deadline_ms: 5, waiting_max: 4 });
      let unlock: (() => void) | undefined;
      const asked: Promise<string | null>[] = [];
      for (const [index, name] of steps.entries()) {
        const id = `${index}`.padStart(3, '0');
        if (name === 'write' || name === 'throw') {
          const write = commits.run(() => {
            file.insert(id);
            if (name === 'throw') throw new RangeError('wrong');
          });
          asked.push(
            write.then(
              () => id,
              () => null,
            ),
          );
        } else if (name === 'turn') await turns(1);
        else if (name === 'flush') commits.flush();
        else if (name === 'lock') unlock ??= lock(file);
        else {
          unlock?.();
          unlock = undefined;
        }
      }
      const outcomes = await Promise.all(asked);
      unlock?.();
      expect(file.committed()).toEqual(outcomes.filter((id) => id !== null));
    }),
    { numRuns: 40, seed: propertySeed('group commit') },
  );
});

test('a full database at any statement of the batch fails every caller and writes nothing of it', async () => {
  using file = new Users();
  const { page_count } = file.db.$client.query<{ page_count: number }, []>('PRAGMA page_count').get() ?? {
    page_count: 0,
  };
  const batch = Array.from({ length: 200 }, (_, number) => `${number}_${'x'.repeat(200)}`);
  const full_at = new Set<number>();
  for (let spare_pages = 0; spare_pages < 30; spare_pages += 1) {
    file.db.$client.run(`PRAGMA max_page_count = ${page_count + spare_pages}`);
    let started = 0;
    const outcomes = await Promise.allSettled(
      batch.map((name) =>
        file.commits.run(() => {
          started += 1;
          file.insert(name);
        }),
      ),
    );
    expect(outcomes).toEqual(
      batch.map(() => ({ status: 'rejected', reason: expect.objectContaining({ code: 'SQLITE_FULL' }) })),
    );
    expect(file.committed()).toEqual([]);
    full_at.add(started);
  }
  expect(full_at.size).toBeGreaterThan(5);
  file.db.$client.run('PRAGMA max_page_count = 1000000');
  await Promise.all(batch.map((name) => file.commits.run(() => file.insert(name))));
  expect(file.committed()).toEqual(batch);
});

test('a closed database fails every caller', async () => {
  using file = new Users();
  const commits = new GroupCommit(openDatabase(file.path));
  const writes = Promise.allSettled(NAMES.map((name) => commits.run(() => file.insert(name))));
  commits.db.$client.close();
  expect((await writes).map(({ status }) => status)).toEqual(NAMES.map(() => 'rejected'));
});

test('work that returns a promise does not compile: it would be committed before it is done', () => {
  using file = new Users();
  const promise = () => Promise.resolve();
  // @ts-expect-error the type refuses promises
  const committed = () => file.commits.run(promise);
  // @ts-expect-error the type refuses promises
  const transacted = () => transact(file.db, promise);
  expect([typeof committed, typeof transacted]).toEqual(['function', 'function']);
});
