import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { and, eq, sql } from 'drizzle-orm';
import { CopyRefused } from '../../db/copy-database.ts';
import { connectPostgres, databasePlace, type PgConnection } from '../../db/postgres/connection.ts';
import { PostgresRows } from '../../db/postgres/copied-rows.ts';
import { keepNodesOut, livingNodes } from '../../db/postgres/living-nodes.ts';
import { knownMigrations, schemaVersion } from '../../db/postgres/migrate.ts';
import { NodeLease } from '../../db/postgres/node-lease.ts';
import { PostgresBooks } from '../../db/postgres/postgres-books.ts';
import { ledgerEntries, nodes } from '../../db/postgres/schema.ts';
import { ServedPostgresDatabase } from '../../db/postgres/served-postgres-database.ts';
import { SchemaRefused } from '../../db/schema-state.ts';
import { CommandFailed } from '../../src/cli/command-failed.ts';
import { openPostgres } from '../../src/cli/open-postgres.ts';
import { HoldNotOpen } from '../../src/ledger/errors.ts';
import { createLog } from '../../src/log/log.ts';
import { causesOf } from '../../src/problems/causes.ts';
import { systemClock } from '../../src/time/clock.ts';
import { usageOf } from '../ledger/support.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import {
  administer,
  isPostgresMissing,
  type PostgresServer,
  sharedPostgres,
  startPostgres,
  type TestDatabase,
  testDatabase,
} from '../support/postgres.ts';
import { PostgresProxy } from '../support/postgres-proxy.ts';
import { rejection } from '../support/rejection.ts';
import { until } from '../upstreams/support.ts';
import {
  accountNumber,
  addAccounts,
  COST_MICROS,
  expectExact,
  expectExactAt,
  HELD_MICROS,
  LedgerNode,
  ledgerDatabase,
  SHORT_LEASE,
  Told,
} from './ledger-load.ts';

/** A node's holds are released by the others when it is dead, and never while it lives. */

const TEST_TIMEOUT_MS = 120_000;
const KEPT_HOLDS = 5;
/** So many that PostgreSQL would read them in parallel, with the settings below. */
const CHARGED_HOLDS = 20_000;
const PARALLEL_SETTINGS = [
  'parallel_setup_cost',
  'parallel_tuple_cost',
  'min_parallel_table_scan_size',
  'min_parallel_index_scan_size',
];
const LEASE_S = SHORT_LEASE.lease_ms / 1_000;
const NEW_NODE = { id: 'proc_new', lock_key: 2 ** 40, version: 'test' };
/** Nothing is done by the clock. */
const NEVER_RENEWED = { renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };

/** Cuts the connection with the lock of a node. */
const CUT_LOCK = `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
  AND pid IN (SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database())`;

/** A node in a process of its own. */
class NodeProcess implements AsyncDisposable {
  readonly told = new Told();
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;
  readonly #read: Promise<void>;
  readonly #ready = Promise.withResolvers<void>();

  constructor(url: string, id: string, accounts: number) {
    const child = join(import.meta.dir, 'ledger-node-child.ts');
    this.#child = Bun.spawn([process.execPath, child, url, id, String(accounts), String(KEPT_HOLDS)], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    this.#read = this.#readTold();
  }

  ready(): Promise<void> {
    return this.#ready.promise;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name);
  }

  /** Ends the process as `kill -9` does, and reads what it said before. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#read;
  }

  /** Lets it end its work, and then itself. */
  async end(): Promise<void> {
    await this.#child.stdin.end();
    await this.#read;
    expect(await this.#child.exited).toBe(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#child.exited;
  }

  async #readTold(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of this.#child.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [what, request_id = ''] = line.split(' ');
        if (what === 'ready') this.#ready.resolve();
        else if (what === 'charged') this.told.charge(request_id);
        else if (what === 'failed') this.told.fail(request_id, null);
      }
    }
  }
}

async function openHoldsOf({ db }: PgConnection, process_id: string): Promise<number> {
  const ended = sql`EXISTS (SELECT FROM ledger_entries AS ended WHERE ended.hold_entry_id = ${ledgerEntries.id})`;
  const open = await db
    .select({ id: ledgerEntries.id })
    .from(ledgerEntries)
    .where(and(eq(ledgerEntries.kind, 'hold'), eq(ledgerEntries.process_id, process_id), sql`NOT ${ended}`));
  return open.length;
}

/** Seconds since the node renewed its lease, on the database's clock; null when it is not registered. */
async function leaseAge_s({ db }: PgConnection, id: string): Promise<number | null> {
  const age = sql<number>`extract(epoch FROM clock_timestamp() - ${nodes.renewed_at})::float8`;
  const [row] = await db.select({ age }).from(nodes).where(eq(nodes.id, id));
  return row?.age ?? null;
}

/** The sessions with the lock of a node: one, or none. */
async function lockSession({ db }: PgConnection, application_name: string): Promise<number[]> {
  const sessions = await db.$client.unsafe<{ pid: number }[]>(
    `SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND application_name = $1`,
    [application_name],
  );
  return sessions.map(({ pid }) => pid);
}

/** Resolves once nobody has the lock of a node: the server ends a session a moment after its client has hung up. */
async function untilUnlocked(observer: PgConnection, application_name: string): Promise<void> {
  await until(async () => (await lockSession(observer, application_name)).length === 0);
}

/** Resolves with true if a session of that name waits for a lock. */
async function waitsForLock({ db }: PgConnection, application_name: string): Promise<boolean> {
  const waiting = `SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`;
  return (await db.$client.unsafe(waiting, [application_name])).length > 0;
}

/** To this program, the database is of the version before: it lacks the newest migration. */
async function forgetNewestMigration({ db }: PgConnection): Promise<void> {
  await db.execute(
    sql`DELETE FROM __drizzle_migrations WHERE id = (SELECT max(id) FROM __drizzle_migrations)`,
  );
}

const NEWER = new SchemaRefused('was made by a newer version of this program');

/** To this program, the database is of a newer version. */
async function addNewerMigration({ db }: PgConnection): Promise<void> {
  await db.execute(sql`INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('newer', 1)`);
}

/** An outage that outlasts the leases of all nodes: the one of that name has lost its connection and its lock. */
async function endLeases(observer: PgConnection, application_name: string): Promise<void> {
  const { db } = observer;
  expect(await db.$client.unsafe(CUT_LOCK, [application_name])).toHaveLength(1);
  await untilUnlocked(observer, application_name);
  await db.update(nodes).set({ renewed_at: new Date(0) });
  expect(await livingNodes(db)).toBe(0);
}

/** Reads the database as a copy does. Rejects where a copy is refused. */
function copied({ db }: PgConnection): Promise<void> {
  return new PostgresRows(db, 'the database').read(async () => undefined);
}

/** Resolves with the error of an update of the database. */
function updated({ url }: TestDatabase): Promise<unknown> {
  return rejection(openPostgres({ database: url, databasePassword: undefined }, { create: false }));
}

function serverRunsOn({ url }: TestDatabase): CommandFailed {
  return new CommandFailed(
    `A server is running on ${databasePlace(url)}, which this version has to update: stop all servers, then run this command again.`,
  );
}

function fail(problem: unknown): never {
  throw problem;
}

/** So many of PostgreSQL's rows of the ledger were read, by sessions that have ended. */
async function rowsRead({ db }: PgConnection): Promise<number> {
  const [read] = await db.$client.unsafe<{ rows: number }[]>(`
    SELECT (seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'ledger_entries'))::float8
      AS rows
    FROM pg_stat_user_tables WHERE relname = 'ledger_entries'`);
  if (read === undefined) throw new Error('no ledger');
  return read.rows;
}

/** Until the server has no session of that name any more, and has counted what those have read. */
async function sessionsEnded({ db }: PgConnection, application_name: string): Promise<void> {
  const sessions = 'SELECT pid FROM pg_stat_activity WHERE application_name = $1';
  await eventually(async () => (await db.$client.unsafe(sessions, [application_name])).length === 0);
}

/** Several nodes keep holds while the server is away for longer than a lease, and charge them then. */
async function surviveOutage(server: PostgresServer): Promise<void> {
  const { url, accounts } = await ledgerDatabase(server, 'away', 1);
  const [account = accountNumber(0)] = accounts;
  const ids = ['proc_1', 'proc_2', 'proc_3', 'proc_4'];
  const nodes = await Promise.all(ids.map((id) => LedgerNode.start(url, id, SHORT_LEASE)));
  const kept = await Promise.all(
    nodes.map(async (node) => {
      const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
      const answer = await node.books.hold({ ...asked, request_id: `req_${node.id}` });
      if (!answer.held) throw new Error(answer.refusal);
      return { node, hold: answer.hold };
    }),
  );
  const leasePasses = async () => {
    const began_ms = performance.now();
    await eventually(() => performance.now() - began_ms >= 1.25 * SHORT_LEASE.lease_ms);
  };
  // Each is connected for so long that it would release what a dead node has left.
  await leasePasses();
  await server.stop('immediate');
  await leasePasses();
  await server.start();
  // Until each has found again what it lost, and looked for the dead after that.
  await eventually(() => !!nodes.every(({ lease }) => lease.hasLock && lease.isRenewed()));
  await leasePasses();
  await Promise.all(nodes.map(({ lease }) => lease.releaseDead()));
  expect(nodes.map(({ released }) => released)).toEqual(ids.map(() => []));
  for (const { node, hold } of kept) {
    const request_id = `req_${node.id}`;
    const [answered, failed] = [
      usageOf(account, request_id, 1, 200, COST_MICROS),
      usageOf(account, request_id, 1, 503, 0),
    ];
    await node.books.charge(hold, COST_MICROS, answered, failed);
    node.told.charge(request_id);
    await node[Symbol.asyncDispose]();
  }
  await expectExactAt(url, accounts, nodes);
}

describe.skipIf(isPostgresMissing())('a node', () => {
  test(
    'that lives keeps its holds when the server was away for longer than a lease, and charges them',
    async () => {
      const server = await startPostgres();
      try {
        await surviveOutage(server);
      } finally {
        await server.remove();
      }
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'that is killed leaves its holds to another one, and all that its clients were told of is charged',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 3);
      const survivor = await LedgerNode.start(database.url, 'proc_survivor', SHORT_LEASE);
      let is_over = false;
      const load = survivor.load(accounts, 4, () => is_over);
      const told = [survivor.told];
      const ids = ['proc_1', 'proc_2', 'proc_3'];
      await Promise.all(
        ids.map(async (id, number) => {
          await using victim = new NodeProcess(database.url, id, accounts.length);
          told.push(victim.told);
          await victim.ready();
          await victim.told.chargedMore(30 + 17 * number);
          await victim.kill();
          const left = await openHoldsOf(observer, id);
          expect(left).toBeGreaterThanOrEqual(KEPT_HOLDS);
          while ((await leaseAge_s(observer, id)) !== null) {
            const open = await openHoldsOf(observer, id);
            // Read after the holds: the lease may run out between the two reads.
            const age_s = await leaseAge_s(observer, id);
            // Not before its lease has run out.
            if (open < left && age_s !== null) expect(age_s).toBeGreaterThan(LEASE_S);
            await Bun.sleep(20);
          }
          expect(await openHoldsOf(observer, id)).toBe(0);
        }),
      );
      is_over = true;
      await load;
      await survivor[Symbol.asyncDispose]();
      expect(survivor.released.map(([id]) => id).sort()).toEqual(ids);
      expect(survivor.problems).toEqual([]);
      await expectExact(observer, accounts, told);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'that is paused for longer than its lease keeps its holds and charges them, and does not stop the others',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      // One organization, so that a pause under its lock meets everybody.
      const accounts = await addAccounts(observer, 1);
      const other = await LedgerNode.start(database.url, 'proc_other', SHORT_LEASE);
      let is_over = false;
      const load = other.load(accounts, 4, () => is_over);
      await using paused = new NodeProcess(database.url, 'proc_paused', accounts.length);
      await paused.ready();
      for (let pause = 0; pause < 4; pause += 1) {
        await paused.told.chargedMore(10 + 3 * pause);
        paused.signal('SIGSTOP');
        await other.told.chargedMore(10);
        await eventually(async () => ((await leaseAge_s(observer, 'proc_paused')) ?? 0) >= 1.5 * LEASE_S);
        await other.lease.releaseDead();
        expect(await openHoldsOf(observer, 'proc_paused')).toBeGreaterThanOrEqual(KEPT_HOLDS);
        paused.signal('SIGCONT');
      }
      await paused.end();
      is_over = true;
      await load;
      await other[Symbol.asyncDispose]();
      expect(other.released).toEqual([]);
      const kept = [...paused.told.charged].filter((request_id) => request_id.includes('kept'));
      expect(kept).toHaveLength(KEPT_HOLDS);
      await expectExact(observer, accounts, [other.told, paused.told]);
    },
    TEST_TIMEOUT_MS,
  );

  test('whose connection with its lock was cut takes the lock again, and lives by it when its lease has run out', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [account] = await addAccounts(observer, 1);
    if (account === undefined) throw new Error('no account');
    // The other looks when it is told to: not between the cut and the renewal, when nothing says that the node lives.
    const slowly = { ...SHORT_LEASE, lease_ms: 60_000, renew_every_ms: 60_000, look_every_ms: 1_000_000 };
    await using node = await LedgerNode.start(database.url, 'proc_cut', slowly);
    await using other = await LedgerNode.start(database.url, 'proc_other', { ...slowly, lease_ms: 0 });
    await node.books.hold({ ...account, request_id: 'req_1', amount_micros: HELD_MICROS, at_ms: Date.now() });
    expect(await observer.db.$client.unsafe(CUT_LOCK, ['proc_cut'])).toHaveLength(1);
    await node.lease.renew();
    expect(node.lease.hasLock).toBe(true);
    // The lease has run out as the other counts it; the lock says that the node lives.
    expect(await other.lease.releaseDead()).toBe(0);
    expect(await openHoldsOf(observer, 'proc_cut')).toBe(1);
  });

  test(
    'that lost its lock is dead when its lease has run out, not before; then its client gets an error and is not charged',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 1);
      const [account = accountNumber(0)] = accounts;
      const by_hand = { lease_ms: 4_000, renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };
      await using other = await LedgerNode.start(database.url, 'proc_other', by_hand);
      const connected_ms = performance.now();
      await using node = await LedgerNode.start(database.url, 'proc_cut', by_hand);
      const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
      const answer = await node.books.hold({ ...asked, request_id: 'req_1' });
      if (!answer.held) throw new Error(answer.refusal);
      await eventually(() => performance.now() - connected_ms >= by_hand.lease_ms);
      await node.lease.renew();
      expect(await observer.db.$client.unsafe(CUT_LOCK, ['proc_cut'])).toHaveLength(1);
      expect(await other.lease.releaseDead()).toBe(0);
      await eventually(async () => (await other.lease.releaseDead()) !== 0);
      const [answered, failed] = [usageOf(account, 'req_1', 1, 200, 0), usageOf(account, 'req_1', 1, 503, 0)];
      await expect(node.books.charge(answer.hold, 0, answered, failed)).rejects.toBeInstanceOf(HoldNotOpen);
      expect(node.books.open.holds).toBe(0);
      // It is a node again as soon as it places a hold.
      await node.request(account);
      expect([node.told.charged.size, node.lease.hasLock]).toEqual([1, true]);
      expect(await other.lease.releaseDead()).toBe(0);
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );

  test('that just connected takes nobody for dead before the others had the time to renew their leases', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [account] = await addAccounts(observer, 1);
    if (account === undefined) throw new Error('no account');
    const dead = await LedgerNode.start(database.url, 'proc_dead', SHORT_LEASE);
    await dead.books.hold({ ...account, request_id: 'req_1', amount_micros: HELD_MICROS, at_ms: Date.now() });
    await dead.lease.close({ open_holds: dead.books.open.holds });
    await observer.db.update(nodes).set({ renewed_at: new Date(0) });
    const rarely = { ...SHORT_LEASE, look_every_ms: 1_000_000 };
    await using node = await LedgerNode.start(database.url, 'proc_new', rarely);
    expect(await node.books.recover()).toBe(0);
    expect(await openHoldsOf(observer, 'proc_dead')).toBe(1);
    let released = 0;
    while (released === 0) {
      released = await node.lease.releaseDead();
      await Bun.sleep(20);
    }
    expect([released, await openHoldsOf(observer, 'proc_dead')]).toEqual([1, 0]);
    expect(await leaseAge_s(observer, 'proc_dead')).toBe(null);
    await dead.connection.close();
  });

  test('that died is dead also when the clock of the database was stepped back by an hour, and one that lives is not', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [account = accountNumber(0)] = await addAccounts(observer, 1);
    const rarely = { ...SHORT_LEASE, renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };
    const dead = await LedgerNode.start(database.url, 'proc_dead', rarely);
    await using living = await LedgerNode.start(database.url, 'proc_living', rarely);
    await using other = await LedgerNode.start(database.url, 'proc_other', { ...rarely, lease_ms: 0 });
    for (const { id, books } of [dead, living]) {
      const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
      await books.hold({ ...asked, request_id: `req_${id}` });
    }
    expect(await livingNodes(observer.db)).toBe(3);
    await dead.lease.close({ open_holds: dead.books.open.holds });
    await dead.connection.close();
    await untilUnlocked(observer, 'proc_dead');
    // The same as a clock that goes back.
    await observer.db.update(nodes).set({ renewed_at: sql`clock_timestamp() + interval '1 hour'` });
    // Its lease says nothing now, and the others have their locks.
    expect(await livingNodes(observer.db)).toBe(2);
    expect(await other.lease.releaseDead()).toBe(1);
    expect(other.released).toEqual([['proc_dead', 1]]);
    expect(await leaseAge_s(observer, 'proc_dead')).toBe(null);
    expect(await openHoldsOf(observer, 'proc_living')).toBe(1);
  });

  test('that is paused keeps a newer version from updating the database, and a copy from beginning', async () => {
    await using database = await testDatabase();
    const observer = await database.connect();
    await using paused = await LedgerNode.start(database.url, 'proc_paused', NEVER_RENEWED);
    await observer.db.update(nodes).set({ renewed_at: sql`clock_timestamp() - interval '1 hour'` });
    expect(await livingNodes(observer.db)).toBe(1);
    await forgetNewestMigration(observer);
    expect(await updated(database)).toEqual(serverRunsOn(database));
    expect(await schemaVersion(observer.db)).toBe(knownMigrations().length - 1);
    expect(await rejection(copied(observer))).toBeInstanceOf(CopyRefused);
    await paused.lease.close();
    await copied(observer);
  });

  test('that died before the clock of the database was stepped back keeps nobody from a copy', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const dead = await LedgerNode.start(database.url, 'proc_dead', NEVER_RENEWED);
    await dead.lease.close({ open_holds: 1 });
    await untilUnlocked(observer, 'proc_dead');
    expect(await rejection(copied(observer))).toBeInstanceOf(CopyRefused);
    await observer.db.update(nodes).set({ renewed_at: sql`clock_timestamp() + interval '1 hour'` });
    expect(await livingNodes(observer.db)).toBe(0);
    await copied(observer);
    await dead.connection.close();
  });

  test('that registers just now keeps a newer version from updating the database', async () => {
    await using database = await testDatabase();
    const observer = await database.connect();
    await forgetNewestMigration(observer);
    let update: Promise<unknown> = Promise.resolve();
    await observer.db.transaction(async (registering) => {
      await registering.insert(nodes).values({ ...NEW_NODE, started_at: new Date(), renewed_at: new Date() });
      let is_over = false;
      update = updated(database).finally(() => {
        is_over = true;
      });
      await eventually(async () => is_over || (await waitsForLock(observer, 'tds')));
    });
    expect(await update).toEqual(serverRunsOn(database));
    expect(await schemaVersion(observer.db)).toBe(knownMigrations().length - 1);
  });

  test('that starts while a newer version updates the database waits for it, and does not become a node then', async () => {
    await using database = await testDatabase();
    const observer = await database.connect();
    const connection = await database.connect({ application_name: 'proc_late' });
    const events = { onProblem: fail, onReleased: fail };
    const node = { id: 'proc_late', version: 'test' };
    let started: Promise<unknown> = Promise.resolve();
    await observer.db.transaction(async (updating) => {
      await keepNodesOut(updating);
      started = rejection(NodeLease.register(connection.db, node, events));
      await eventually(() => waitsForLock(observer, 'proc_late'));
      await updating.execute(sql`INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('newer', 1)`);
    });
    expect(await started).toEqual(NEWER);
    expect(await observer.db.select().from(nodes)).toEqual([]);
    await untilUnlocked(observer, 'proc_late');
  });

  test('that was away while a newer version updated the database writes no hold and no end, and is none any more', async () => {
    await using database = await testDatabase();
    const observer = await database.connect();
    const [account = accountNumber(0)] = await addAccounts(observer, 1);
    const away = { ...NEVER_RENEWED, lease_ms: 0 };
    await using node = await LedgerNode.start(database.url, 'proc_away', away, { deadline_ms: 3_000 });
    const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
    const answer = await node.books.hold({ ...asked, request_id: 'req_1' });
    if (!answer.held) throw new Error(answer.refusal);
    await endLeases(observer, 'proc_away');
    await addNewerMigration(observer);
    const [answered, failed] = [
      usageOf(account, 'req_1', 1, 200, COST_MICROS),
      usageOf(account, 'req_1', 1, 503, 0),
    ];
    expect(await rejection(node.books.charge(answer.hold, COST_MICROS, answered, failed))).toMatchObject({
      name: 'LedgerUnavailable',
      cause: NEWER,
    });
    expect(await rejection(node.books.hold({ ...asked, request_id: 'req_2' }))).toEqual(NEWER);
    expect(await rejection(node.lease.renew())).toEqual(NEWER);
    expect(await openHoldsOf(observer, 'proc_away')).toBe(1);
    await untilUnlocked(observer, 'proc_away');
    expect(await livingNodes(observer.db)).toBe(0);
    // The operator goes back: the hold is released then.
    await observer.db.execute(sql`DELETE FROM __drizzle_migrations WHERE hash = 'newer'`);
    await node.books.whenSettled();
    expect(await openHoldsOf(observer, 'proc_away')).toBe(0);
    await node.request(account);
    expect([node.told.charged.size, node.lease.hasLock]).toEqual([1, true]);
    await expectExact(observer, [account], [node.told]);
  });

  test('that was away while a newer version updated the database changes nothing else either, and is not ready', async () => {
    await using database = await testDatabase();
    const observer = await database.connect();
    const [{ organization_id } = accountNumber(0)] = await addAccounts(observer, 1);
    const node = await ServedPostgresDatabase.open(
      {
        url: database.url,
        connections: 4,
        version: 'test',
        lease_times: { ...NEVER_RENEWED, lease_ms: 0 },
      },
      {
        clock: systemClock,
        process_id: 'proc_served',
        log: createLog('silent'),
        report: () => undefined,
        onCommit: () => undefined,
      },
    );
    const writes = [
      () => node.store.transaction(({ accounts }) => accounts.renameOrganization(organization_id, 'new')),
      () => node.write(),
      () => node.beginsHourlyRun(),
      () => node.history.run({ now_ms: Date.now(), prune_before_ms: null }),
    ];
    const { name } = (await node.store.accounts.findOrganization(organization_id)) ?? {};
    await endLeases(observer, 'tds requests');
    await addNewerMigration(observer);
    for (const write of writes) expect(await rejection(write())).toEqual(NEWER);
    expect((await node.store.accounts.findOrganization(organization_id))?.name).toBe(name);
    await observer.db.execute(sql`DELETE FROM __drizzle_migrations WHERE hash = 'newer'`);
    for (const write of writes) await write();
    expect((await node.store.accounts.findOrganization(organization_id))?.name).toBe('new');
    await node.close();
  });

  test('that is paused costs the others one look at its lock: they read neither its holds nor the organizations', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const rarely = { ...SHORT_LEASE, renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };
    await using paused = await LedgerNode.start(database.url, 'proc_paused', rarely);
    await using other = await LedgerNode.start(database.url, 'proc_other', { ...rarely, lease_ms: 0 });
    expect(paused.lease.hasLock).toBe(true);
    await observer.db.transaction(async (executor) => {
      // A reader of them waits until its statement is ended, and fails.
      await executor.execute(sql`LOCK TABLE ledger_entries, organizations IN ACCESS EXCLUSIVE MODE`);
      expect(await other.lease.releaseDead()).toBe(0);
    });
    expect(other.problems).toEqual([]);
  });

  test(
    'that died costs the others no reading of the ledger, however large it is',
    async () => {
      await using database = await testDatabase();
      const observer = await database.connect({ application_name: 'observer' });
      const [account = accountNumber(0)] = await addAccounts(observer, 1);
      const filler = await database.connect({ application_name: 'filler', connections: 1 });
      const held = `SELECT '${account.organization_id}', '${account.project_id}', '2026-01', 1`;
      await filler.db.$client.unsafe(`
        INSERT INTO ledger_entries (organization_id, project_id, month, created_at_ms, kind, credit_delta_micros,
          held_delta_micros, request_id, process_id)
        ${held}, 'hold', 0, 10, 'req_' || number, 'proc_ended' FROM generate_series(1, ${CHARGED_HOLDS}) AS number`);
      await filler.db.$client.unsafe(`
        INSERT INTO ledger_entries (organization_id, project_id, month, created_at_ms, kind, credit_delta_micros,
          held_delta_micros, hold_entry_id)
        ${held}, 'charge', 0, -10, id FROM ledger_entries WHERE kind = 'hold'`);
      await filler.db.$client.unsafe('ANALYZE ledger_entries');
      await filler.close();
      await sessionsEnded(observer, 'filler');
      // PostgreSQL does with this ledger what it does by itself with one of millions.
      const server = await sharedPostgres();
      for (const setting of PARALLEL_SETTINGS)
        await administer(server, `ALTER DATABASE ${database.name} SET ${setting} = 0`);
      const rarely = { ...SHORT_LEASE, renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };
      const dead = await LedgerNode.start(database.url, 'proc_dead', rarely);
      const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
      await dead.books.hold({ ...asked, request_id: 'req_kept' });
      await dead.lease.close({ open_holds: dead.books.open.holds });
      await dead.connection.close();
      const before = await rowsRead(observer);
      const other = await LedgerNode.start(database.url, 'proc_other', { ...rarely, lease_ms: 0 });
      await observer.db
        .update(nodes)
        .set({ renewed_at: new Date(0) })
        .where(eq(nodes.id, 'proc_dead'));
      expect(await other.lease.releaseDead()).toBe(1);
      expect(await leaseAge_s(observer, 'proc_dead')).toBe(null);
      await other[Symbol.asyncDispose]();
      await sessionsEnded(observer, 'proc_dead');
      await sessionsEnded(observer, 'proc_other');
      expect((await rowsRead(observer)) - before).toBeLessThan(CHARGED_HOLDS / 100);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'that is paused while its statements are answered reads the answers then, and keeps its lock',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const [account = accountNumber(0)] = await addAccounts(observer, 1);
      const bounds = { statement_ms: 3_000, transaction_ms: 3_000 };
      const rarely = { ...SHORT_LEASE, renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };
      await using node = await LedgerNode.start(database.url, 'proc_paused', rarely, {}, bounds);
      const lock = await lockSession(observer, 'proc_paused');
      const { $client: client } = node.connection.db;
      const lockNode = `SELECT id FROM nodes WHERE id = 'proc_paused' FOR UPDATE`;
      // The server lets them go on while this process stands still.
      const blocker = await observer.db.$client.reserve();
      const blocked = blocker.unsafe(`BEGIN; ${lockNode}; SELECT pg_sleep(2); COMMIT`).execute();
      const isActive = `SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(2); COMMIT' AND wait_event = 'PgSleep'`;
      await eventually(async () => (await observer.db.$client.unsafe(isActive)).length !== 0);
      const answers = [node.lease.renew(), (async () => await client.unsafe(lockNode))()];
      const waiting = `SELECT pid FROM pg_stat_activity WHERE application_name = 'proc_paused' AND wait_event_type = 'Lock'`;
      await eventually(async () => (await observer.db.$client.unsafe(waiting)).length >= answers.length);
      Bun.sleepSync(5_000);
      await Promise.all([...answers, blocked]);
      blocker.release();
      expect(await lockSession(observer, 'proc_paused')).toEqual(lock);
      await node.request(account);
      expect(await lockSession(observer, 'proc_paused')).toEqual(lock);
    },
    TEST_TIMEOUT_MS,
  );

  test('that ends without having learned that its hold was placed leaves that to the others', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [account = accountNumber(0)] = await addAccounts(observer, 1);
    const rarely = { ...SHORT_LEASE, renew_every_ms: 1_000_000, look_every_ms: 1_000_000 };
    await using other = await LedgerNode.start(database.url, 'proc_other', { ...rarely, lease_ms: 0 });
    const node = await LedgerNode.start(database.url, 'proc_ended', rarely);
    using proxy = new PostgresProxy((await sharedPostgres()).port);
    const cut_off = await connectPostgres(proxy.url(database.url), { connections: 2 });
    const books = new PostgresBooks(
      cut_off.db.$client,
      node.lease,
      { now_ms: () => Date.now() },
      { onProblem: () => undefined, onSettled: () => undefined },
      // Over only when the hold has been sent, also where making a connection takes long.
      { deadline_ms: 2_000 },
    );
    proxy.cutNext('after the commit, for good');
    const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
    const refusal = await rejection(books.hold({ ...asked, request_id: 'req_1' }));
    expect(causesOf(refusal)[0]).toMatchObject({
      error: 'LedgerUnavailable',
      message: expect.stringContaining('a connection to it or a transaction failed'),
    });
    await books.close();
    await cut_off.close();
    expect([books.open.holds, books.left_holds]).toEqual([0, 1]);
    await node.lease.close({ open_holds: books.left_holds });
    await node.connection.close();
    expect(await openHoldsOf(observer, 'proc_ended')).toBe(1);
    await observer.db
      .update(nodes)
      .set({ renewed_at: new Date(0) })
      .where(eq(nodes.id, 'proc_ended'));
    expect(await other.lease.releaseDead()).toBe(1);
    await expectExact(observer, [account], [node.told]);
  });

  test('that ends is not registered any more, and a hold of nobody is released by the next start', async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [account = accountNumber(0)] = await addAccounts(observer, 1);
    const ended = await LedgerNode.start(database.url, 'proc_ended');
    const asked = { ...account, amount_micros: HELD_MICROS, at_ms: Date.now() };
    await ended.books.hold({ ...asked, request_id: 'req_1' });
    await ended.lease.close();
    expect(await leaseAge_s(observer, 'proc_ended')).toBe(null);
    await ended.connection.close();
    await using next = await LedgerNode.start(database.url, 'proc_next');
    await next.books.hold({ ...asked, request_id: 'req_2' });
    expect(await next.books.recover()).toBe(1);
    expect([await openHoldsOf(observer, 'proc_ended'), await openHoldsOf(observer, 'proc_next')]).toEqual([
      0, 1,
    ]);
  });
});
