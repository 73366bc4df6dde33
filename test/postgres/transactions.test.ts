import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import type { Executor, PgConnection } from '../../db/postgres/connection.ts';
import { postgresError, sqlState } from '../../db/postgres/errors.ts';
import { PostgresStore } from '../../db/postgres/postgres-store.ts';
import { organizations } from '../../db/postgres/schema.ts';
import { REQUEST_BOUNDS } from '../../db/postgres/served-postgres-database.ts';
import { Transactions, transact, WriteQueueFull } from '../../db/postgres/transactions.ts';
import { NestedTransaction, type Records } from '../../src/store/store.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { Gate } from '../support/faults.ts';
import { isPostgresMissing, type TestDatabase, testDatabase } from '../support/postgres.ts';
import { rejection } from '../support/rejection.ts';

let database: TestDatabase;
/** Two nodes on one database, each with a pool of its own. */
let here: PgConnection;
let there: PgConnection;

async function makeOrganizations(...ids: readonly string[]): Promise<void> {
  await here.db.insert(organizations).values(ids.map((id) => ({ id, name: id, created_at_ms: 0 })));
}

/** The credit of an organization, as everybody sees it. */
async function creditOf(id: string): Promise<number | undefined> {
  const [row] = await there.db
    .select({ credit_micros: organizations.credit_micros })
    .from(organizations)
    .where(eq(organizations.id, id));
  return row?.credit_micros;
}

async function addCredit(executor: Executor, id: string): Promise<void> {
  await executor
    .update(organizations)
    .set({ credit_micros: sql`${organizations.credit_micros} + 1` })
    .where(eq(organizations.id, id));
}

/** A count that is lost when two transactions run at once: it is read, then written. */
async function increment({ accounts }: Records, id: string): Promise<void> {
  const before = Number((await accounts.findOrganization(id))?.name);
  await accounts.renameOrganization(id, `${before + 1}`);
}

/** Ends the session that does it, as an administrator or a failover does. */
async function cutOff(executor: Executor): Promise<void> {
  const [session] = await executor.execute<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`);
  await there.db.execute(sql`SELECT pg_terminate_backend(${session?.pid}, 5000)`);
}

/** The connections of a node for its requests. */
async function asNode(): Promise<PgConnection['db']> {
  return (await database.connect({ connections: 2, bounds: REQUEST_BOUNDS })).db;
}

/** From now on the COMMIT of whoever has changed an organization does this. */
async function doAtCommit(statement: string): Promise<void> {
  await here.db.execute(
    sql`${sql.raw(`CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN ${statement}; RETURN NULL; END $$`)}`,
  );
  await here.db.execute(sql`CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON organizations
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()`);
}

describe.skipIf(isPostgresMissing())('a transaction of PostgreSQL', () => {
  beforeEach(async () => {
    database = await testDatabase();
    here = await database.connect({ connections: 4 });
    there = await database.connect({ connections: 4 });
  });
  afterEach(() => database[Symbol.asyncDispose]());

  test('whose work rejects is rolled back, and rejects with the same error', async () => {
    await makeOrganizations('a');
    const failure = new Error('a rule');
    let attempts = 0;
    const done = transact(here.db, async (executor) => {
      attempts += 1;
      await addCredit(executor, 'a');
      throw failure;
    });
    expect(await rejection(done)).toBe(failure);
    expect(attempts).toBe(1);
    expect(await creditOf('a')).toBe(0);
  });

  test('that swallows the error of a statement cannot look as if it was committed', async () => {
    await makeOrganizations('a');
    const done = transact(here.db, async (executor) => {
      await addCredit(executor, 'a');
      await executor.execute(sql`SELECT 1 / 0`).catch(() => undefined);
    });
    expect(postgresError(await rejection(done))?.code).toBe('ERR_POSTGRES_COMMIT_ROLLED_BACK');
    expect(await creditOf('a')).toBe(0);
  });

  test('that the server undid for another one, because each waited for the other, is done again', async () => {
    await makeOrganizations('a', 'b');
    const gates = [new Gate(), new Gate()] as const;
    let attempts = 0;
    const move = (connection: PgConnection, first: string, second: string, gate: Gate) =>
      transact(connection.db, async (executor) => {
        attempts += 1;
        await addCredit(executor, first);
        await gate.pass();
        await addCredit(executor, second);
      });
    const both = Promise.all([move(here, 'a', 'b', gates[0]), move(there, 'b', 'a', gates[1])]);
    await Promise.all(gates.map((gate) => gate.reached));
    for (const gate of gates) gate.open();
    await both;
    // One of them met the other and came back, perhaps before the other had its row: then they met again.
    expect(attempts).toBeGreaterThanOrEqual(3);
    expect([await creditOf('a'), await creditOf('b')]).toEqual([2, 2]);
  });

  test('whose connection is cut in the middle of its work is done again, on another connection', async () => {
    await makeOrganizations('a');
    let attempts = 0;
    await transact(here.db, async (executor) => {
      attempts += 1;
      await addCredit(executor, 'a');
      if (attempts === 1) await cutOff(executor);
      await addCredit(executor, 'a');
    });
    expect(attempts).toBe(2);
    expect(await creditOf('a')).toBe(2);
  });

  test('that is undone every time is given up', async () => {
    await makeOrganizations('a');
    let attempts = 0;
    const done = transact(
      here.db,
      async (executor) => {
        attempts += 1;
        await addCredit(executor, 'a');
        await executor.execute(sql`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$`);
      },
      { random: () => 0 },
    );
    expect(sqlState(await rejection(done))).toBe('40001');
    expect(attempts).toBe(5);
    expect(await creditOf('a')).toBe(0);
  });

  test.each([
    ['the connection breaks', 'PERFORM pg_terminate_backend(pg_backend_pid())', '57P01'],
    ['the server gives another one preference', "RAISE EXCEPTION USING ERRCODE = '40P01'", '40P01'],
  ])('is never done again when %s while it is committed', async (_, statement, state) => {
    await makeOrganizations('a');
    await doAtCommit(statement);
    let attempts = 0;
    const done = transact(here.db, async (executor) => {
      attempts += 1;
      await addCredit(executor, 'a');
    });
    expect(sqlState(await rejection(done))).toBe(state);
    expect(attempts).toBe(1);
  });

  test('takes nothing more once it has ended', async () => {
    await makeOrganizations('a');
    let kept: Executor | undefined;
    await transact(here.db, (executor) => {
      kept = executor;
      return Promise.resolve();
    });
    if (kept === undefined) throw new Error('no executor');
    const late = addCredit(kept, 'a');
    expect(postgresError(await rejection(late))?.code).toBe('ERR_POSTGRES_INVALID_TRANSACTION_STATE');
    expect(await creditOf('a')).toBe(0);
  });
});

describe.skipIf(isPostgresMissing())('transactions of the store in PostgreSQL', () => {
  beforeEach(async () => {
    database = await takeDatabase();
    here = await database.connect({ connections: 2 });
    there = await database.connect({ connections: 2 });
  });
  afterEach(() => database[Symbol.asyncDispose]());

  const makeCounter = () =>
    here.db.insert(organizations).values({ id: 'counter', name: '0', created_at_ms: 0 });
  const counted = async () => (await new PostgresStore(there.db).accounts.findOrganization('counter'))?.name;

  test('of two nodes run one after the other, so that nothing which one of them read is outdated when it writes', async () => {
    await makeCounter();
    const stores = [new PostgresStore(here.db), new PostgresStore(there.db)];
    const each = Array.from({ length: 40 }, (_, index) =>
      stores[index % stores.length]?.transaction((records) => increment(records, 'counter')),
    );
    await Promise.all(each);
    expect(await counted()).toBe('40');
  });

  test('are all counted, though some of their connections are cut off', async () => {
    await makeCounter();
    const nodes = [new Transactions(here.db), new Transactions(there.db)];
    let cuts = 0;
    const each = Array.from({ length: 20 }, (_, index) => {
      let attempts = 0;
      return nodes[index % nodes.length]?.run(async (executor) => {
        attempts += 1;
        await addCredit(executor, 'counter');
        if (index % 5 > 0 || attempts > 1) return;
        cuts += 1;
        await cutOff(executor);
        await addCredit(executor, 'counter');
      });
    });
    await Promise.all(each);
    expect(cuts).toBe(4);
    expect(await creditOf('counter')).toBe(20);
  });

  test('wait for their turn without keeping connections from single reads', async () => {
    await makeCounter();
    const store = new PostgresStore(here.db);
    const gate = new Gate();
    const first = store.transaction(async (records) => {
      await increment(records, 'counter');
      await gate.pass();
    });
    await gate.reached;
    const waiting = Array.from({ length: 5 }, () =>
      store.transaction((records) => increment(records, 'counter')),
    );
    // The pool has two connections. What is open is not seen yet.
    expect((await store.accounts.findOrganization('counter'))?.name).toBe('0');
    gate.open();
    await Promise.all([first, ...waiting]);
    expect(await counted()).toBe('6');
  });

  test('cannot begin inside another one, which goes on', async () => {
    await makeCounter();
    const store = new PostgresStore(here.db);
    await store.transaction(async (records) => {
      const inner = store.transaction((others) => increment(others, 'counter'));
      expect(await rejection(inner)).toBeInstanceOf(NestedTransaction);
      await increment(records, 'counter');
    });
    expect(await counted()).toBe('1');
  });

  test('are refused when too many wait, and taken again afterwards', async () => {
    const transactions = new Transactions(here.db, { waiting_max: 2 });
    const gate = new Gate();
    const open = transactions.run(() => gate.pass());
    const waiting = transactions.run(() => Promise.resolve());
    expect(await rejection(transactions.run(() => Promise.resolve()))).toBeInstanceOf(WriteQueueFull);
    gate.open();
    await Promise.all([open, waiting]);
    expect(await transactions.run(() => Promise.resolve('taken'))).toBe('taken');
  });

  test('are refused when their turn does not come in time, so that nobody waits for all before them together', async () => {
    const transactions = new Transactions(here.db, { wait_max_ms: 250 });
    const open = transactions.run((executor) => executor.execute(sql`SELECT pg_sleep(0.6)`));
    const late = [1, 2].map(() => rejection(transactions.run(() => Promise.resolve())));
    for (const error of await Promise.all(late)) expect(error).toBeInstanceOf(WriteQueueFull);
    await open;
  });

  test('of a node that is paused in the middle of one do not hold up the other nodes, and its own is done again', async () => {
    await makeCounter();
    const gate = new Gate();
    let attempts = 0;
    // As nodes connect: the paused one is ended later than a statement may take.
    const [one, other] = [await asNode(), await asNode()];
    const paused = new PostgresStore(one).transaction(async (records) => {
      attempts += 1;
      if (attempts === 1) await gate.pass();
      await increment(records, 'counter');
    });
    await gate.reached;
    // The server ends the paused one; the client may notice before its work goes on.
    await new PostgresStore(other).transaction((records) => increment(records, 'counter'));
    gate.open();
    await paused;
    expect(attempts).toBe(2);
    expect(await counted()).toBe('2');
  });

  test('have the bound of a statement that their node has, once they have their turn', async () => {
    const bounds = [await asNode(), here.db].map((db) =>
      new Transactions(db).run((executor) =>
        executor.execute<{ bound: string }>(sql`SELECT current_setting('statement_timeout') AS bound`),
      ),
    );
    expect((await Promise.all(bounds)).map(([row]) => row?.bound)).toEqual([
      `${REQUEST_BOUNDS.statement_ms / 1_000}s`,
      '0',
    ]);
  });
});
