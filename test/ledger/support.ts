import { Database } from 'bun:sqlite';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { continueAudit } from '../../db/sqlite/audit.ts';
import { type Db, neverWait, openDatabase, transact } from '../../db/sqlite/connection.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import {
  apiKeys,
  ledgerEntries,
  organizations,
  payments,
  projects,
  usageRecords,
} from '../../db/sqlite/schema.ts';
import { SqliteBooks } from '../../db/sqlite/sqlite-books.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import type { BooksEvents } from '../../src/store/books.ts';
import type { Hold } from '../../src/store/hold.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { type Clock, systemClock } from '../../src/time/clock.ts';
import type { PruneParts } from '../../src/usage/prune.ts';
import { openMigrated } from '../support/sqlite-database.ts';

/** A temporary folder with a real database file, gone when disposed. */
export class TemporaryDatabase implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'tds-test-'));
  #crashes = 0;
  #path = join(this.directory, '0.db');
  #db = openMigrated(this.#path);
  readonly #abandoned: Db[] = [];

  /** The connection of the process that lives now. */
  get db(): Db {
    return this.#db;
  }

  get path(): string {
    return this.#path;
  }

  /**
   * Goes on as a new process does after the old one was killed at this instant. It works on a copy of the files,
   * because a connection with live statements cannot be closed abruptly.
   */
  crash(): Db {
    const path = join(this.directory, `${++this.#crashes}.db`);
    for (const suffix of ['', '-wal']) {
      if (existsSync(this.#path + suffix)) copyFileSync(this.#path + suffix, path + suffix);
    }
    this.#abandoned.push(this.#db);
    this.#path = path;
    this.#db = openDatabase(path);
    return this.#db;
  }

  [Symbol.dispose](): void {
    for (const db of [...this.#abandoned, this.#db]) db.$client.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export interface Account {
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
}

/** The rows of an account without credit and limit, each named by its id. */
export const accountRows = ({ organization_id, project_id, api_key_id }: Account) => ({
  organization: { id: organization_id, name: organization_id, created_at_ms: 0 },
  project: { id: project_id, organization_id, name: project_id, created_at_ms: 0 },
  key: keyRow(api_key_id, project_id),
});

/** The row of a key that is named by its id. */
export const keyRow = (id: string, project_id: string) => ({
  id,
  project_id,
  name: id,
  secret_sha256: id,
  display_prefix: 'sk_svc_01234',
  created_at_ms: 0,
});

/** The row of the completed payment that a top-up or refund of the ledger belongs to. */
export const paymentRow = (
  { organization_id }: Pick<Account, 'organization_id'>,
  id: string,
  kind: 'top_up' | 'refund',
  amount_micros: number,
) => {
  const known = { provider: 'manual', external_id: id, status: 'completed', created_at_ms: 0 } as const;
  return { id, organization_id, kind, amount_micros, ...known };
};

/** Returns the parts of `pruneUsage` on a database. */
export function pruningOf(db: Db): PruneParts {
  return {
    store: new SqliteStore(db),
    continueAudit: (now_ms) => continueAudit(db, { now_ms }).ok,
  };
}

/** Inserts an organization without credit, a project in it without a limit, and a key of that project. */
export function addAccount(db: Db, name: string): Account {
  const account = { organization_id: `org_${name}`, project_id: `proj_${name}`, api_key_id: `key_${name}` };
  const { organization, project, key } = accountRows(account);
  db.insert(organizations)
    .values({ ...organization, name })
    .run();
  db.insert(projects).values(project).run();
  db.insert(apiKeys)
    .values({ ...key, name: `${name}'s key` })
    .run();
  return account;
}

/** Inserts another project of the account's organization. */
export function addProject(db: Db, account: Account, id: string): void {
  db.insert(projects)
    .values({ id, organization_id: account.organization_id, name: id, created_at_ms: 0 })
    .run();
}

/** Inserts a `paymentRow`. */
export function addPayment(db: Db, ...payment: Parameters<typeof paymentRow>): void {
  db.insert(payments)
    .values(paymentRow(...payment))
    .run();
}

/** The usage row of a request that was answered at that cost, or that failed with another status. */
export function usageOf(
  account: Account,
  request_id: string,
  time_ms: number,
  status: number,
  cost_micros: number,
): UsageRow {
  return {
    ...account,
    request_id,
    time_ms,
    model: 'decision-1',
    mode: 'fast',
    endpoint: '/v1/decisions',
    status,
    questions: status === 200 ? 1 : 0,
    input_tokens: 2 * cost_micros,
    cost_micros,
    latency_ms: 1.5,
  };
}

/** The wall clock of `LedgerSetup`. */
export const NOW_MS = Date.UTC(2026, 4, 5);
/** The amounts that `LedgerSetup` pays in, holds for each request, and charges for it. */
export const CREDIT_MICROS = 1_000_000;
export const HELD_MICROS = 10;
export const COST_MICROS = 4;
/** The process whose holds the tests place. */
export const PROCESS_ID = 'proc_test';
/** How long writes of `LedgerSetup` wait for a lock. */
const LOCK_DEADLINE_MS = 20;

/** The ledger with all that it stands on, and one account with credit. */
export class LedgerSetup extends TemporaryDatabase {
  readonly clock: Clock = { ...systemClock, now_ms: () => NOW_MS };
  readonly account: Account = addAccount(this.db, 'acme');
  readonly commits = new GroupCommit(this.db, { lock_deadline_ms: LOCK_DEADLINE_MS });
  readonly store = new SqliteStore(this.db);
  readonly ledger = new SqliteLedger(this.db);
  readonly usage = new UsageWriter(this.db);
  /** The events of the books: failed ends, and the numbers of waiting releases once they were written. */
  readonly problems: (readonly [step: string, error: unknown])[] = [];
  readonly settled: number[] = [];
  readonly events: BooksEvents = {
    onProblem: (step, error) => this.problems.push([step, error]),
    onSettled: (holds) => this.settled.push(holds),
  };
  readonly books = new SqliteBooks(this.commits, this.clock, PROCESS_ID, this.events);

  constructor() {
    super();
    const { organization_id } = this.account;
    transact(this.db, () => {
      addPayment(this.db, this.account, 'pay_1', 'top_up', CREDIT_MICROS);
      this.ledger.topUp({ organization_id, amount_micros: CREDIT_MICROS, payment_id: 'pay_1', at_ms: 0 });
    });
  }

  async hold(request_id: string): Promise<Hold> {
    const request = { ...this.account, request_id, amount_micros: HELD_MICROS, at_ms: NOW_MS };
    const answer = await this.books.hold(request);
    if (!answer.held) throw new Error(answer.refusal);
    return answer.hold;
  }

  /** Ends a request as the service does: a usage row with the end, of what the client gets. */
  charge(hold: Hold, request_id: string): Promise<void> {
    return this.books.charge(
      hold,
      COST_MICROS,
      usageOf(this.account, request_id, NOW_MS, 200, COST_MICROS),
      usageOf(this.account, request_id, NOW_MS, 503, 0),
    );
  }

  /** Ends a request that failed as the service does. */
  release(hold: Hold, request_id: string): Promise<void> {
    return this.books.release(hold, usageOf(this.account, request_id, NOW_MS, 502, 0));
  }

  /** Takes the database's write lock, as another process would, until the returned function is called. */
  lock(): () => void {
    neverWait(this.db);
    const other = new Database(this.path, { strict: true });
    other.run('BEGIN IMMEDIATE');
    return () => {
      other.run('ROLLBACK');
      other.close();
    };
  }

  /** The kinds of the entries that requests have left in the ledger, in order. */
  kinds(): string[] {
    const entries = this.db.select().from(ledgerEntries).orderBy(ledgerEntries.id).all();
    return entries.map(({ kind }) => kind).filter((kind) => kind !== 'top_up');
  }

  /** The statuses of the usage rows. */
  statuses(): number[] {
    return this.db
      .select()
      .from(usageRecords)
      .all()
      .map(({ status }) => status);
  }

  /** Returns the account's total spending. */
  spentMicros(): number {
    const organization = this.db.select().from(organizations).get();
    return CREDIT_MICROS - (organization?.credit_micros ?? 0);
  }
}

/** The seed of this run's property tests: from the environment to repeat a run, else new, and printed. */
export function propertySeed(name: string): number {
  const given = process.env.PROPERTY_SEED;
  const seed = given === undefined ? crypto.getRandomValues(new Int32Array(1))[0] : Number(given);
  if (seed === undefined || !Number.isInteger(seed))
    throw new TypeError(`PROPERTY_SEED=${given} is no integer`);
  console.log(`${name}: PROPERTY_SEED=${seed}`);
  return seed;
}
