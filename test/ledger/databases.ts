import { Database } from 'bun:sqlite';
import { expect } from 'bun:test';
import { eq } from 'drizzle-orm';
import { runAudit as auditPostgres, continueAudit as continuePostgres } from '../../db/postgres/audit.ts';
import type { PgConnection } from '../../db/postgres/connection.ts';
import { sqlState } from '../../db/postgres/errors.ts';
import { LedgerUnavailable } from '../../db/postgres/ledger-batches.ts';
import { PostgresMovementReader } from '../../db/postgres/movement-reader.ts';
import { NodeLease } from '../../db/postgres/node-lease.ts';
import { PostgresBooks } from '../../db/postgres/postgres-books.ts';
import { PostgresStore } from '../../db/postgres/postgres-store.ts';
import * as postgres from '../../db/postgres/schema.ts';
import { runAudit as auditSqlite, continueAudit as continueSqlite } from '../../db/sqlite/audit.ts';
import { neverWait } from '../../db/sqlite/connection.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import * as sqlite from '../../db/sqlite/schema.ts';
import { SqliteBooks } from '../../db/sqlite/sqlite-books.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import type { AuditReport } from '../../src/store/audit-report.ts';
import type { Books, BooksEvents } from '../../src/store/books.ts';
import type { Hold, HoldRequest, HoldResult } from '../../src/store/hold.ts';
import type { LedgerRecords, PaymentMovement } from '../../src/store/ledger-records.ts';
import type { MovementReader } from '../../src/store/movement-reader.ts';
import type { Store } from '../../src/store/store.ts';
import { giveBackDatabase, takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { isPostgresMissing, type TestDatabase } from '../support/postgres.ts';
import {
  type Account,
  accountRows,
  COST_MICROS,
  CREDIT_MICROS,
  HELD_MICROS,
  NOW_MS,
  PROCESS_ID,
  paymentRow,
  TemporaryDatabase,
  usageOf,
} from './support.ts';

/** Rows of one table, as both databases give them. */
type Rows<T extends 'organizations' | 'projectMonths' | 'ledgerEntries' | 'usageRecords'> =
  (typeof sqlite)[T]['$inferSelect'][];

/** A real database for tests of one account's money, and the books of its current process. */
export abstract class LedgerDatabase implements AsyncDisposable {
  readonly account: Account = {
    organization_id: 'org_acme',
    project_id: 'proj_acme',
    api_key_id: 'key_acme',
  };
  /** The events of the books: failed ends, and the numbers of waiting releases once they were written. */
  readonly problems: (readonly [step: string, error: unknown])[] = [];
  readonly settled: number[] = [];
  protected readonly events: BooksEvents = {
    onProblem: (step, error) => this.problems.push([step, error]),
    onSettled: (holds) => this.settled.push(holds),
  };
  /** The books' clock. */
  now_ms = NOW_MS;
  protected readonly clock = { now_ms: () => this.now_ms };

  abstract readonly books: Books;
  abstract readonly store: Store;
  abstract readonly movements: MovementReader;
  /** The error of a write that meets another's lock. */
  abstract readonly unavailable: unknown;
  abstract isDuplicate(error: unknown): boolean;
  abstract addAccount(account: Account): Promise<void>;
  abstract addPayment(
    account: Account,
    id: string,
    kind: 'top_up' | 'refund',
    amount_micros: number,
  ): Promise<void>;
  abstract limit(account: Account, spend_limit_micros: number | null): Promise<void>;
  abstract forgetProcess(request_id: string): Promise<void>;
  abstract organizations(): Promise<Rows<'organizations'>>;
  abstract months(): Promise<Rows<'projectMonths'>>;
  /** In the order of their ids. */
  abstract entries(): Promise<Rows<'ledgerEntries'>>;
  abstract usage(): Promise<Rows<'usageRecords'>>;
  abstract usageDays(): Promise<(typeof sqlite.usageDays.$inferSelect)[]>;
  abstract continueAudit(now_ms: number): Promise<AuditReport>;
  abstract audit(options?: { readonly ended_before_ms?: number }): Promise<AuditReport>;
  /** Keeps everything locked, as another process would, until the returned function is called. */
  abstract lock(): Promise<() => Promise<void>>;
  /**
   * The process is killed at this instant, in the middle of a transaction if that is asked for, and a new one opens its
   * books.
   */
  abstract crash(options?: { readonly in_transaction: boolean }): Promise<Books>;
  abstract [Symbol.asyncDispose](): Promise<void>;

  /** Pays credit in, as the rules of payments do. */
  async pay(amount_micros: number, payment_id = 'pay_1'): Promise<void> {
    await this.addPayment(this.account, payment_id, 'top_up', amount_micros);
    await this.ledger.topUp(this.movement(amount_micros, payment_id));
  }

  get ledger(): LedgerRecords {
    return this.store.ledger;
  }

  movement(amount_micros: number, payment_id: string, at_ms = 0): PaymentMovement {
    return { organization_id: this.account.organization_id, amount_micros, payment_id, at_ms };
  }

  request(request_id: string, amount_micros: number, at_ms = NOW_MS): HoldRequest {
    const { organization_id, project_id } = this.account;
    return { organization_id, project_id, request_id, amount_micros, at_ms };
  }

  limitKey(monthly_limit_micros: number | null, { api_key_id } = this.account): Promise<void> {
    return this.store.keys.setMonthlyLimit(api_key_id, monthly_limit_micros);
  }

  /** Asks for a hold that counts for the account's key. */
  holdOfKey(request_id: string, amount_micros: number, at_ms = NOW_MS): Promise<HoldResult> {
    const { api_key_id } = this.account;
    return this.books.hold({ ...this.request(request_id, amount_micros, at_ms), api_key_id });
  }

  async hold(request_id: string, amount_micros = HELD_MICROS, at_ms = NOW_MS): Promise<Hold> {
    const answer = await this.books.hold(this.request(request_id, amount_micros, at_ms));
    if (!answer.held) throw new Error(answer.refusal);
    return answer.hold;
  }

  /** Ends a request as the service does: a usage row with the end, of what the client gets. */
  charge(hold: Hold, request_id: string, cost_micros = COST_MICROS): Promise<void> {
    return this.books.charge(
      hold,
      cost_micros,
      usageOf(this.account, request_id, NOW_MS, 200, cost_micros),
      usageOf(this.account, request_id, NOW_MS, 503, 0),
    );
  }

  /** Ends a request that failed as the service does. */
  release(hold: Hold, request_id: string): Promise<void> {
    return this.books.release(hold, usageOf(this.account, request_id, NOW_MS, 502, 0));
  }

  /** The kinds of the entries that requests have left in the ledger, in order. */
  async kinds(): Promise<string[]> {
    return (await this.entries()).map(({ kind }) => kind).filter((kind) => kind !== 'top_up');
  }

  /** The statuses of the usage rows. */
  async statuses(): Promise<number[]> {
    return (await this.usage()).map(({ status }) => status);
  }

  /** Nothing is held, exactly that many requests were charged, and the audit is clean. */
  async expectSettled(charged: number, credit_micros = CREDIT_MICROS): Promise<void> {
    expect((await this.organizations())[0]).toMatchObject({
      credit_micros: credit_micros - charged * COST_MICROS,
      held_micros: 0,
      open_holds: 0,
    });
    await this.expectClean();
  }

  async expectClean(): Promise<void> {
    const { checks, open_holds } = await this.audit({ ended_before_ms: NOW_MS + 1 });
    expect(checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
    expect(open_holds).toBe(0);
  }

  /** Everything that the ledger writes, to compare before and after. */
  async stored() {
    const [entries, organizations, months] = await Promise.all([
      this.entries(),
      this.organizations(),
      this.months(),
    ]);
    return { entries, organizations, months };
  }
}

/** How long the writes of `LedgerDatabase` wait for a lock. */
const LOCK_DEADLINE_MS = 20;
/** The same for PostgreSQL, where every write waits for another process: a busy machine must not be taken for a lock. */
const POSTGRES_WAITS = { deadline_ms: 1_500, transaction_ms: 1_000 };

const DONE = Promise.resolve();

let processes = 0;

/** As in the service: no process has the number of an earlier one, whose holds and connections are told apart by it. */
function nextProcess(): number {
  processes += 1;
  return processes;
}

/** The statements of a process that is killed before its commit. */
const HALF_A_TRANSACTION = [
  'UPDATE organizations SET credit_micros = credit_micros - 1, held_micros = held_micros + 1',
  'DELETE FROM usage_records',
  `INSERT INTO ledger_entries (organization_id, project_id, kind, credit_delta_micros, held_delta_micros, request_id,
    month, created_at_ms)
  SELECT organization_id, id, 'hold', 0, 1, 'req_lost_' || id, '2026-01', 0 FROM projects`,
];

class SqliteLedgerDatabase extends LedgerDatabase {
  readonly #file = new TemporaryDatabase();
  readonly unavailable = expect.objectContaining({ code: 'SQLITE_BUSY' });
  books: Books = this.#open(PROCESS_ID);

  get store(): Store {
    return new SqliteStore(this.#file.db);
  }

  get movements(): MovementReader {
    return new SqliteMovementReader(this.#file.db);
  }

  isDuplicate(error: unknown): boolean {
    return error instanceof Error && error.message.includes('UNIQUE');
  }

  addAccount(account: Account): Promise<void> {
    const { organization, project, key } = accountRows(account);
    this.#file.db.insert(sqlite.organizations).values(organization).onConflictDoNothing().run();
    this.#file.db.insert(sqlite.projects).values(project).run();
    this.#file.db.insert(sqlite.apiKeys).values(key).onConflictDoNothing().run();
    return DONE;
  }

  addPayment(...payment: Parameters<typeof paymentRow>): Promise<void> {
    this.#file.db
      .insert(sqlite.payments)
      .values(paymentRow(...payment))
      .run();
    return DONE;
  }

  limit({ project_id }: Account, spend_limit_micros: number | null): Promise<void> {
    const { projects } = sqlite;
    this.#file.db.update(projects).set({ spend_limit_micros }).where(eq(projects.id, project_id)).run();
    return DONE;
  }

  forgetProcess(request_id: string): Promise<void> {
    const { ledgerEntries } = sqlite;
    const ofRequest = eq(ledgerEntries.request_id, request_id);
    this.#file.db.update(ledgerEntries).set({ process_id: null }).where(ofRequest).run();
    return DONE;
  }

  organizations = () =>
    Promise.resolve(this.#file.db.select().from(sqlite.organizations).orderBy(sqlite.organizations.id).all());
  months = () => Promise.resolve(this.#file.db.select().from(sqlite.projectMonths).all());
  entries = () =>
    Promise.resolve(this.#file.db.select().from(sqlite.ledgerEntries).orderBy(sqlite.ledgerEntries.id).all());
  usage = () => Promise.resolve(this.#file.db.select().from(sqlite.usageRecords).all());
  usageDays = () => Promise.resolve(this.#file.db.select().from(sqlite.usageDays).all());
  audit = (options = {}) => Promise.resolve(auditSqlite(this.#file.db, options));
  continueAudit = (now_ms: number) => Promise.resolve(continueSqlite(this.#file.db, { now_ms }));

  lock(): Promise<() => Promise<void>> {
    neverWait(this.#file.db);
    const other = new Database(this.#file.path, { strict: true });
    other.run('BEGIN IMMEDIATE');
    return Promise.resolve(() => {
      other.run('ROLLBACK');
      other.close();
      return DONE;
    });
  }

  crash({ in_transaction } = { in_transaction: false }): Promise<Books> {
    if (in_transaction) {
      this.#file.db.$client.run('BEGIN IMMEDIATE');
      for (const statement of HALF_A_TRANSACTION) this.#file.db.$client.run(statement);
    }
    this.#file.crash();
    this.books = this.#open(`proc_next_${nextProcess()}`);
    return Promise.resolve(this.books);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#file[Symbol.dispose]();
    return DONE;
  }

  #open(process_id: string): Books {
    const commits = new GroupCommit(this.#file.db, { lock_deadline_ms: LOCK_DEADLINE_MS });
    return new SqliteBooks(commits, this.clock, process_id, this.events);
  }
}

/** The longest time of a timer: a node that a test lets die must not renew its lease in a later test. */
const NEVER_MS = 2 ** 31 - 1;
/** Dead at once when its lock is free, and looked for by nobody but the tests. */
const NO_LEASE = { lease_ms: 0, renew_every_ms: NEVER_MS, look_every_ms: NEVER_MS };
const NODE_EVENTS = {
  onProblem: (error: unknown) => {
    throw error;
  },
  onReleased: () => undefined,
};

class PostgresLedgerDatabase extends LedgerDatabase {
  readonly unavailable = expect.any(LedgerUnavailable);
  readonly #database: TestDatabase;
  /** Of the tests themselves. */
  readonly #observer: PgConnection;
  #process: { readonly connection: PgConnection; readonly name: string; readonly books: Books } | undefined;

  private constructor(database: TestDatabase, observer: PgConnection) {
    super();
    this.#database = database;
    this.#observer = observer;
  }

  static async open(): Promise<PostgresLedgerDatabase> {
    const database = await takeDatabase();
    const opened = new PostgresLedgerDatabase(database, await database.connect({ connections: 4 }));
    await opened.#start(PROCESS_ID);
    return opened;
  }

  get books(): Books {
    if (this.#process === undefined) throw new Error('no process lives');
    return this.#process.books;
  }

  get store(): Store {
    return new PostgresStore(this.#observer.db);
  }

  get movements(): MovementReader {
    return new PostgresMovementReader(this.#observer.db);
  }

  isDuplicate(error: unknown): boolean {
    return sqlState(error) === '23505';
  }

  async addAccount(account: Account): Promise<void> {
    const { organization, project, key } = accountRows(account);
    await this.#observer.db.insert(postgres.organizations).values(organization).onConflictDoNothing();
    await this.#observer.db.insert(postgres.projects).values(project);
    await this.#observer.db.insert(postgres.apiKeys).values(key).onConflictDoNothing();
  }

  async addPayment(...payment: Parameters<typeof paymentRow>): Promise<void> {
    await this.#observer.db.insert(postgres.payments).values(paymentRow(...payment));
  }

  async limit({ project_id }: Account, spend_limit_micros: number | null): Promise<void> {
    const { projects } = postgres;
    await this.#observer.db.update(projects).set({ spend_limit_micros }).where(eq(projects.id, project_id));
  }

  async forgetProcess(request_id: string): Promise<void> {
    const { ledgerEntries } = postgres;
    const ofRequest = eq(ledgerEntries.request_id, request_id);
    await this.#observer.db.update(ledgerEntries).set({ process_id: null }).where(ofRequest);
  }

  organizations = async () =>
    await this.#observer.db.select().from(postgres.organizations).orderBy(postgres.organizations.id);
  months = async () => await this.#observer.db.select().from(postgres.projectMonths);
  entries = async () =>
    await this.#observer.db.select().from(postgres.ledgerEntries).orderBy(postgres.ledgerEntries.id);
  usage = async () => await this.#observer.db.select().from(postgres.usageRecords);
  usageDays = async () => await this.#observer.db.select().from(postgres.usageDays);
  audit = (options = {}) => auditPostgres(this.#observer.db, options);
  continueAudit = (now_ms: number) => continuePostgres(this.#observer.db, { now_ms });

  async lock(): Promise<() => Promise<void>> {
    const other = await this.#observer.db.$client.reserve();
    await other.unsafe('BEGIN');
    await other.unsafe('SELECT id FROM organizations FOR UPDATE');
    return async () => {
      await other.unsafe('ROLLBACK');
      other.release();
    };
  }

  async crash({ in_transaction } = { in_transaction: false }): Promise<Books> {
    const { connection, name } = this.#process ?? {};
    if (in_transaction) {
      const open = await connection?.db.$client.reserve();
      await open?.unsafe('BEGIN');
      for (const statement of HALF_A_TRANSACTION) await open?.unsafe(statement);
    }
    await connection?.close();
    const alive = 'SELECT pid FROM pg_stat_activity WHERE application_name = $1';
    // The server notices that the process is gone as soon as it reads from its connections.
    await eventually(async () => (await this.#observer.db.$client.unsafe(alive, [name])).length === 0);
    await this.#start(`proc_next_${nextProcess()}`);
    return this.books;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return giveBackDatabase(this.#database);
  }

  async #start(id: string): Promise<void> {
    const name = `process ${nextProcess()}`;
    const connection = await this.#database.connect({ connections: 4, application_name: name });
    const { $client: client } = connection.db;
    const node = await NodeLease.register(connection.db, { id, version: 'test' }, NODE_EVENTS, NO_LEASE);
    const books = new PostgresBooks(client, node, this.clock, this.events, POSTGRES_WAITS);
    this.#process = { connection, name, books };
  }
}

/** Every database that has the service's books. */
export const LEDGER_DATABASES = [
  {
    name: 'SQLite' as const,
    open: (): Promise<LedgerDatabase> => Promise.resolve(new SqliteLedgerDatabase()),
  },
  { name: 'PostgreSQL' as const, open: (): Promise<LedgerDatabase> => PostgresLedgerDatabase.open() },
].filter(({ name }) => name === 'SQLite' || !isPostgresMissing());

/** A database with the account, and nothing paid unless it is asked for. */
export async function openLedger(
  { open }: (typeof LEDGER_DATABASES)[number],
  credit_micros = CREDIT_MICROS,
): Promise<LedgerDatabase> {
  const database = await open();
  await database.addAccount(database.account);
  if (credit_micros > 0) await database.pay(credit_micros);
  return database;
}
