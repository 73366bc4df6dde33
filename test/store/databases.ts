import { spyOn } from 'bun:test';
import type { ReservedSQL, SQL } from 'bun';
import { drizzle as drizzlePostgres } from 'drizzle-orm/bun-sql';
import { runAudit as auditPostgres } from '../../db/postgres/audit.ts';
import { writeLedger } from '../../db/postgres/ledger-transaction.ts';
import type { LedgerWrite } from '../../db/postgres/ledger-writes.ts';
import { PostgresMovementReader } from '../../db/postgres/movement-reader.ts';
import { PostgresStore } from '../../db/postgres/postgres-store.ts';
import { BY_INDEX_ONLY } from '../../db/postgres/session.ts';
import { PostgresUsageReader } from '../../db/postgres/usage-reader.ts';
import { runAudit as auditSqlite } from '../../db/sqlite/audit.ts';
import { type Db, neverWait, openDatabase, transact } from '../../db/sqlite/connection.ts';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { SqliteUsageReader } from '../../db/sqlite/usage-reader.ts';
import type { HoldRequest } from '../../src/store/hold.ts';
import type { MovementReader } from '../../src/store/movement-reader.ts';
import type { Store } from '../../src/store/store.ts';
import type { UsageReader } from '../../src/store/usage-reader.ts';
import { temporaryDatabase } from '../accounts/support.ts';
import { giveBackDatabase, takeDatabase } from '../support/emptied-postgres.ts';
import { everythingInPostgres, everythingInSqlite } from '../support/everything.ts';
import { isPostgresMissing } from '../support/postgres.ts';
import { insertIntoPostgres, insertIntoSqlite, type StoredRows } from './stored-rows.ts';

/** A database of its own, with the service's schema and no row. */
export interface OpenDatabase {
  readonly store: Store;
  readonly usage: UsageReader;
  readonly movements: MovementReader;
  /** The store of another process on the same database, with connections of its own. */
  another(): Promise<Store>;
  /** Runs a statement that both databases understand, outside of every store. */
  run(statement: string): Promise<void>;
  /** Inserts rows as they are, which takes several steps through the store. */
  insert(rows: StoredRows): Promise<void>;
  /** How many rows a table has, or those of them that meet a condition (`TABLE WHERE …`). */
  count(rows: string): Promise<number>;
  /** The statements that the work runs on a store of this database, each with the tables that its plan scans. */
  plansOf(work: (store: Store) => Promise<unknown>): Promise<readonly PlannedStatement[]>;
  /** The statements of a hold and its end, as the books write them, and their plans. */
  plansOfPair(request: HoldRequest): Promise<readonly PlannedStatement[]>;
  /** Everything that is stored, by table, in the same order each time. */
  everything(): Promise<Readonly<Record<string, readonly unknown[]>>>;
  /** Resolves with true if the audit finds no violation. */
  isSound(): Promise<boolean>;
  close(): Promise<void>;
}

/** A statement, and how the database finds its rows. */
export interface PlannedStatement {
  readonly statement: string;
  /** The tables that are read from one end to the other. */
  readonly scanned: readonly string[];
  /** The indexes by which rows are found. */
  readonly indexes: readonly string[];
  /** The indexes that have all that is read, so that no row is. */
  readonly covering: readonly string[];
  /** The conditions by which rows are found in indexes. */
  readonly conditions: readonly string[];
  /** True if all rows that are found are sorted before the first is given. */
  readonly sorts: boolean;
}

/** A logger of drizzle that keeps what it is told. */
function statementLogger() {
  const logged: { readonly query: string; readonly params: unknown[] }[] = [];
  return { logged, logQuery: (query: string, params: unknown[]) => void logged.push({ query, params }) };
}

/** The tables or indexes that a plan names after certain words. */
function namesIn(plan: readonly string[], words: RegExp): string[] {
  return plan.flatMap((line) => words.exec(line)?.[1] ?? []);
}

function tells(plan: readonly string[], words: RegExp): boolean {
  return plan.some((line) => words.test(line));
}

interface Database {
  readonly name: 'SQLite' | 'PostgreSQL';
  open(): Promise<OpenDatabase>;
}

/** Small, because two hundred tests share the server; more than one, so that queries do overtake each other. */
const CONNECTIONS = 4;

function openSqlite(): Promise<OpenDatabase> {
  const { db, path, remove } = temporaryDatabase();
  neverWait(db);
  const others: Db[] = [];
  return Promise.resolve({
    store: new SqliteStore(db),
    usage: new SqliteUsageReader(db),
    movements: new SqliteMovementReader(db),
    another: () => {
      const other = openDatabase(path);
      neverWait(other);
      others.push(other);
      return Promise.resolve(new SqliteStore(other));
    },
    run: (statement) => Promise.try(() => void db.$client.run(statement)),
    insert: (rows) => Promise.try(() => insertIntoSqlite(db, rows)),
    count: (rows) =>
      Promise.try(() =>
        Number(db.$client.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${rows}`).get()?.n),
      ),
    plansOf(work) {
      const store = new SqliteStore(db);
      return plansInSqlite(db, () => work(store));
    },
    plansOfPair: (request) =>
      plansInSqlite(db, () => {
        const ledger = new SqliteLedger(db);
        transact(db, () => {
          const result = ledger.hold(request, 'proc_test');
          if (!result.held) throw new Error(result.refusal);
          ledger.charge(result.hold, 0, request.at_ms);
        });
      }),
    everything: () => Promise.try(() => everythingInSqlite(db)),
    isSound: () => Promise.try(() => auditSqlite(db).ok),
    close: () => {
      for (const other of others) other.$client.close();
      remove();
      return Promise.resolve();
    },
  });
}

/** The statements that the work prepares, and their plans. */
async function plansInSqlite({ $client }: Db, work: () => unknown): Promise<readonly PlannedStatement[]> {
  const watched = [spyOn($client, 'query'), spyOn($client, 'prepare')];
  await work();
  const statements = watched.flatMap(({ mock }) => mock.calls.map(([statement]) => statement));
  for (const watch of watched) watch.mockRestore();
  return statements.map((statement) => {
    using explained = $client.prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${statement}`);
    const plan = explained.all().map(({ detail }) => detail);
    // SQLite calls the scan for a minimum or maximum a search, but names no index.
    return {
      statement,
      scanned: namesIn(plan, /^(?:SCAN|SEARCH(?= \w+$)) (\w+)/),
      indexes: namesIn(plan, /USING (?:COVERING )?INDEX (\w+)/),
      covering: namesIn(plan, /USING COVERING INDEX (\w+)/),
      conditions: namesIn(plan, /USING (?:COVERING )?INDEX \w+ \((.+)\)/),
      sorts: tells(plan, /ORDER BY$/),
    };
  });
}

/** The plan of each statement, as the session would run it. */
async function plansInPostgres(
  session: SQL | ReservedSQL,
  statements: readonly (readonly [statement: string, parameters?: readonly unknown[]])[],
): Promise<readonly PlannedStatement[]> {
  const plans: PlannedStatement[] = [];
  for (const [statement, parameters = []] of statements) {
    const lines = await session.unsafe<{ 'QUERY PLAN': string }[]>(`EXPLAIN ${statement}`, [...parameters]);
    const plan = lines.map((line) => line['QUERY PLAN']);
    plans.push({
      statement,
      scanned: namesIn(plan, /Seq Scan on (\w+)/),
      indexes: namesIn(plan, /Index.*? (?:using|on) (\w+)/),
      covering: namesIn(plan, /Index Only Scan.*? using (\w+)/),
      conditions: namesIn(plan, /Index Cond: (.+)/),
      sorts: tells(plan, /Sort Key/),
    });
  }
  return plans;
}

/** The statements of a hold and its end, and their plans in a session of the books. */
async function plansOfPairInPostgres(
  client: SQL,
  request: HoldRequest,
): Promise<readonly PlannedStatement[]> {
  using session = await client.reserve();
  for (const setting of BY_INDEX_ONLY) await session.unsafe(setting);
  const watched = spyOn(session, 'unsafe');
  const write = async (write: LedgerWrite) => {
    const result = await writeLedger(
      session,
      [{ write, is_doubtful: false, is_abandoned: false }],
      'proc_test',
    );
    if (!result.ok) throw result.error;
    return result.written[0];
  };
  const held = await write({ kind: 'hold', request });
  if (held?.kind !== 'held' || !held.result.held) throw new Error('the hold was refused');
  await write({ kind: 'release', hold: held.result.hold, usage: null });
  const statements = watched.mock.calls.flatMap(([statement, parameters]) =>
    /^(?:BEGIN|COMMIT)/.test(statement) || !Array.isArray(parameters)
      ? []
      : [[statement, parameters] as const],
  );
  watched.mockRestore();
  const plans = await plansInPostgres(session, statements);
  await session.unsafe('RESET ALL');
  return plans;
}

async function openPostgres(): Promise<OpenDatabase> {
  const database = await takeDatabase();
  const { db } = await database.connect({ connections: CONNECTIONS });
  return {
    store: new PostgresStore(db),
    usage: new PostgresUsageReader(db),
    movements: new PostgresMovementReader(db),
    async another() {
      const other = await database.connect({ connections: CONNECTIONS });
      return new PostgresStore(other.db);
    },
    async run(statement) {
      await db.$client.unsafe(statement);
    },
    insert: (rows) => insertIntoPostgres(db, rows),
    async count(rows) {
      const [row] = await db.$client.unsafe<{ n: string }[]>(`SELECT count(*) AS n FROM ${rows}`);
      return Number(row?.n);
    },
    async plansOf(work) {
      const logger = statementLogger();
      await work(new PostgresStore(drizzlePostgres(db.$client, { logger })));
      return plansInPostgres(
        db.$client,
        logger.logged.map(({ query, params }) => [query, params]),
      );
    },
    plansOfPair: (request) => plansOfPairInPostgres(db.$client, request),
    everything: () => everythingInPostgres(db),
    isSound: async () => (await auditPostgres(db)).ok,
    close: () => giveBackDatabase(database),
  };
}

/** The databases on which every rule of the store's ports must hold, for `describe.each`. */
export const DATABASES: readonly Database[] = [
  { name: 'SQLite', open: openSqlite },
  ...(isPostgresMissing() ? [] : [{ name: 'PostgreSQL' as const, open: openPostgres }]),
];
