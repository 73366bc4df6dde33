import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { transact } from '../../db/connection.ts';
import { GroupCommit } from '../../db/group-commit.ts';
import { users } from '../../db/schema.ts';
import { TemporaryDatabase } from '../ledger/support.ts';

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

test('a database that is locked by another process fails every caller, and the next batch is written', async () => {
  using file = new Users();
  file.db.$client.run('PRAGMA busy_timeout = 0');
  const other = new Database(file.path, { strict: true });
  other.run('BEGIN IMMEDIATE');
  const locked = await Promise.allSettled(NAMES.map((name) => file.commits.run(() => file.insert(name))));
  expect(locked).toEqual(
    NAMES.map(() => ({ status: 'rejected', reason: expect.objectContaining({ code: 'SQLITE_BUSY' }) })),
  );
  other.run('ROLLBACK');
  other.close();
  await Promise.all(NAMES.map((name) => file.commits.run(() => file.insert(name))));
  expect(file.committed()).toEqual(NAMES);
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

test('work that returns a promise does not compile: it would be committed before it is done', () => {
  using file = new Users();
  const promise = () => Promise.resolve();
  // @ts-expect-error the type refuses promises
  const committed = () => file.commits.run(promise);
  // @ts-expect-error the type refuses promises
  const transacted = () => transact(file.db, promise);
  expect([typeof committed, typeof transacted]).toEqual(['function', 'function']);
});
