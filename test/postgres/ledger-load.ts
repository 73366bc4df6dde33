import { expect } from 'bun:test';
import { runAudit } from '../../db/postgres/audit.ts';
import type { ClientBounds } from '../../db/postgres/bounded-client.ts';
import { connectPostgres, type Executor, type PgConnection } from '../../db/postgres/connection.ts';
import type { LedgerBatchOptions } from '../../db/postgres/ledger-batches.ts';
import { PostgresLedgerRecords } from '../../db/postgres/ledger-records.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { type LeaseTimes, NodeLease } from '../../db/postgres/node-lease.ts';
import { PostgresBooks } from '../../db/postgres/postgres-books.ts';
import {
  apiKeys,
  ledgerEntries,
  organizations,
  payments,
  projects,
  usageRecords,
} from '../../db/postgres/schema.ts';
import type { Hold } from '../../src/store/hold.ts';
import { type Account, accountRows, paymentRow, usageOf } from '../ledger/support.ts';
import { eventually } from '../support/eventually.ts';
import { administer, type PostgresServer } from '../support/postgres.ts';

/** Enough for every load, in each organization. */
export const CREDIT_MICROS = 1_000_000_000;
export const HELD_MICROS = 10;
export const COST_MICROS = 4;
const CONNECTIONS = 6;

/** So short that a test can wait until it has run out, and long for a busy machine. */
export const SHORT_LEASE = { lease_ms: 2_000, renew_every_ms: 300, look_every_ms: 100 };

/** The account of that number, of those that `addAccounts` inserts. */
export function accountNumber(number: number): Account {
  return {
    organization_id: `org_${number}`,
    project_id: `proj_${number}`,
    api_key_id: `key_${number}`,
  };
}

/** Pays credit in, as the rules of payments do. */
export async function topUp(
  executor: Executor,
  account: Account,
  payment_id: string,
  amount_micros: number,
): Promise<void> {
  const { organization_id } = account;
  await executor.insert(payments).values(paymentRow(account, payment_id, 'top_up', amount_micros));
  await new PostgresLedgerRecords(executor).topUp({ organization_id, amount_micros, payment_id, at_ms: 0 });
}

/** Inserts so many organizations with credit, each with a project and a key. */
export async function addAccounts({ db }: PgConnection, count: number): Promise<Account[]> {
  const accounts = Array.from({ length: count }, (_, number) => accountNumber(number));
  for (const account of accounts) {
    const payment_id = `pay_${account.organization_id}`;
    const { organization, project, key } = accountRows(account);
    await db.insert(organizations).values(organization);
    await db.insert(projects).values(project);
    await db.insert(apiKeys).values(key);
    await topUp(db, account, payment_id, CREDIT_MICROS);
  }
  return accounts;
}

/** A new database of a server, with the service's schema and so many accounts. */
export async function ledgerDatabase(
  server: PostgresServer,
  name: string,
  count: number,
): Promise<{ readonly url: string; readonly accounts: readonly Account[] }> {
  await administer(server, `CREATE DATABASE ${name}`);
  const url = server.url(name);
  const connection = await connectPostgres(url, { connections: 1 });
  await bringUpToDate(connection.db);
  const accounts = await addAccounts(connection, count);
  await connection.close();
  return { url, accounts };
}

/** The answers to a node's clients, by request. */
export class Told {
  readonly charged = new Set<string>();
  readonly failed = new Map<string, unknown>();
  /** Is told of each answer as it is given. */
  onTold: (request_id: string, is_charged: boolean) => void = () => undefined;

  charge(request_id: string): void {
    this.charged.add(request_id);
    this.onTold(request_id, true);
  }

  fail(request_id: string, error: unknown): void {
    this.failed.set(request_id, error);
    this.onTold(request_id, false);
  }

  /** Until so many more requests have been charged. */
  async chargedMore(more: number): Promise<void> {
    const before = this.charged.size;
    await eventually(() => this.charged.size >= before + more);
  }
}

/** A node of its own, with its connections and books. */
export class LedgerNode implements AsyncDisposable {
  readonly told = new Told();
  #requests = 0;

  private constructor(
    readonly id: string,
    readonly connection: PgConnection,
    readonly lease: NodeLease,
    readonly books: PostgresBooks,
    /** How many holds of which nodes it has released: of dead ones, or its own that the database lost the ends of. */
    readonly released: readonly (readonly [node_id: string, holds: number])[],
    readonly problems: readonly unknown[],
  ) {}

  static async start(
    url: string,
    id: string,
    times: LeaseTimes = {},
    options: LedgerBatchOptions = {},
    bounds?: ClientBounds,
  ): Promise<LedgerNode> {
    const connection = await connectPostgres(url, {
      connections: CONNECTIONS,
      application_name: id,
      ...(bounds === undefined ? {} : { bounds }),
    });
    const { $client: client } = connection.db;
    const released: (readonly [string, number])[] = [];
    const problems: unknown[] = [];
    const events = {
      onProblem: (error: unknown) => void problems.push(error),
      onReleased: (node_id: string, holds: number) => void released.push([node_id, holds]),
    };
    const lease = await NodeLease.register(connection.db, { id, version: 'test' }, events, times);
    const books = new PostgresBooks(
      client,
      lease,
      { now_ms: () => Date.now() },
      { onProblem: (_step, error) => void problems.push(error), onSettled: () => undefined },
      options,
    );
    return new LedgerNode(id, connection, lease, books, released, problems);
  }

  /** Places the hold of a request. Rejects where it is refused. */
  async place({ organization_id, project_id }: Account, request_id: string): Promise<Hold> {
    const asked = { organization_id, project_id, request_id, amount_micros: HELD_MICROS, at_ms: Date.now() };
    const answer = await this.books.hold(asked);
    if (!answer.held) throw new Error(answer.refusal, { cause: answer });
    return answer.hold;
  }

  /** Charges a hold, and tells its client. */
  async charge(account: Account, hold: Hold): Promise<void> {
    const usage = (status: number, cost_micros: number) =>
      usageOf(account, hold.request_id, Date.now(), status, cost_micros);
    await this.books.charge(hold, COST_MICROS, usage(200, COST_MICROS), usage(503, 0));
    this.told.charge(hold.request_id);
  }

  /**
   * A request from its hold to its end: charged, but one in eight fails at the model. `onHeld` is called between the
   * two. Resolves with its id. Never rejects.
   */
  async request(account: Account, onHeld: () => void = () => undefined): Promise<string> {
    this.#requests += 1;
    const number = this.#requests;
    const request_id = `req_${this.id}_${number}`;
    try {
      const hold = await this.place(account, request_id);
      onHeld();
      if (number % 8 === 0) {
        await this.books.release(hold, usageOf(account, request_id, Date.now(), 503, 0));
        throw new Error('the model failed');
      }
      await this.charge(account, hold);
    } catch (error) {
      this.told.fail(request_id, error);
    }
    return request_id;
  }

  /** Callers send one request after the other until `isOver`. Each request is of another account. */
  async load(accounts: readonly Account[], callers: number, isOver: () => boolean): Promise<void> {
    const call = async (caller: number) => {
      for (let turn = caller; !isOver(); turn += 1) {
        const account = accounts[turn % accounts.length];
        if (account !== undefined) await this.request(account);
      }
    };
    await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.books.close();
    await this.lease.close({ open_holds: this.books.left_holds });
    await this.connection.close();
  }
}

/**
 * Expects the stored rows to match the clients' answers: every acknowledged charge is stored once, no request with an
 * error is charged, no hold is open, and the balances are exact.
 */
export async function expectExact(
  { db }: PgConnection,
  accounts: readonly Account[],
  told: readonly Told[],
): Promise<void> {
  const entries = await db.select().from(ledgerEntries);
  const request_of = new Map(entries.map(({ id, request_id }) => [id, request_id]));
  const charges = entries.filter(({ kind }) => kind === 'charge');
  const charged = charges.map(({ hold_entry_id }) => request_of.get(hold_entry_id ?? 0) ?? 'none');
  const stored = new Set(charged);
  expect(stored.size).toBe(charged.length);
  for (const { charged, failed } of told) {
    expect([...charged].filter((request_id) => !stored.has(request_id))).toEqual([]);
    expect([...failed.keys()].filter((request_id) => stored.has(request_id))).toEqual([]);
  }
  const usage = await db.select().from(usageRecords);
  const answered = usage.filter(({ status }) => status === 200).map(({ request_id }) => request_id);
  expect(answered.sort()).toEqual(charged.sort());
  const rows = await db.select().from(organizations);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  expect(sum(rows.map(({ credit_micros }) => credit_micros))).toBe(
    accounts.length * CREDIT_MICROS - charges.length * COST_MICROS,
  );
  expect(sum(rows.map(({ held_micros, open_holds }) => held_micros + open_holds))).toBe(0);
  const { checks, open_holds } = await runAudit(db, { ended_before_ms: Date.now() + 1 });
  expect(checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
  expect(open_holds).toBe(0);
}

/** As `expectExact`, of all nodes of a database, through a connection of its own. */
export async function expectExactAt(
  url: string,
  accounts: readonly Account[],
  nodes: readonly LedgerNode[],
): Promise<void> {
  const observer = await connectPostgres(url, { connections: 1 });
  await expectExact(
    observer,
    accounts,
    nodes.map(({ told }) => told),
  );
  await observer.close();
}
