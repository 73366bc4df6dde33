import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { continueAudit, runAudit } from '../../db/postgres/audit.ts';
import type { PgDb } from '../../db/postgres/connection.ts';
import { NodeLease } from '../../db/postgres/node-lease.ts';
import { PostgresBooks } from '../../db/postgres/postgres-books.ts';
import { auditCheckpoints, ledgerEntries, organizations } from '../../db/postgres/schema.ts';
import type { AuditReport } from '../../src/store/audit-report.ts';
import { type Account, addAccount, CREDIT_MICROS, LedgerSetup, NOW_MS, usageOf } from '../ledger/support.ts';
import { type CopiedPostgres, copiedToPostgres } from '../support/copied-postgres.ts';
import { isPostgresMissing } from '../support/postgres.ts';
import { topUp } from './ledger-load.ts';

const NODES = 3;
const CALLERS_A_NODE = 6;
const REQUESTS_A_CALLER = 30;
const HELD_MICROS = 10;

describe.skipIf(isPostgresMissing())('an audit beside nodes that answer requests', () => {
  let copy: CopiedPostgres;
  let accounts: Account[];
  let db: PgDb;
  beforeEach(async () => {
    using setup = new LedgerSetup();
    accounts = [setup.account, addAccount(setup.db, 'other'), addAccount(setup.db, 'third')];
    copy = await copiedToPostgres(setup.db);
    ({ db } = copy);
    for (const account of accounts) await pay(account, `pay_${account.organization_id}`);
  });
  afterEach(() => copy[Symbol.asyncDispose]());

  function pay(account: Account, payment_id: string): Promise<void> {
    return db.transaction((transaction) => topUp(transaction, account, payment_id, CREDIT_MICROS));
  }

  /** One client after another, until its requests are answered: some are charged, and some fail. */
  async function call(books: PostgresBooks, caller: string, first: number): Promise<number> {
    let charged = 0;
    for (let request = 0; request < REQUESTS_A_CALLER; request += 1) {
      const account = accounts[(first + request) % accounts.length] ?? accounts[0];
      if (account === undefined) throw new Error('there is no account');
      const request_id = `req_${caller}_${request}`;
      const { organization_id, project_id } = account;
      const asked = { organization_id, project_id, request_id, amount_micros: HELD_MICROS, at_ms: NOW_MS };
      const answer = await books.hold(asked);
      if (!answer.held) throw new Error(answer.refusal);
      const failed = usageOf(account, request_id, NOW_MS, 502, 0);
      if (request % 4 === 3) await books.release(answer.hold, failed);
      else {
        await books.charge(answer.hold, 4, usageOf(account, request_id, NOW_MS, 200, 4), failed);
        charged += 1;
      }
      if (request % 10 === 9) await pay(account, `pay_${request_id}`);
    }
    return charged;
  }

  async function serve(number: number): Promise<number> {
    const pool = await copy.anotherPool();
    const fail = (error: unknown) => {
      throw error;
    };
    const node = await NodeLease.register(
      pool,
      { id: `node_${number}`, version: 'test' },
      { onProblem: fail, onReleased: () => undefined },
    );
    const books = new PostgresBooks(
      pool.$client,
      node,
      { now_ms: () => NOW_MS },
      { onProblem: (_, error) => fail(error), onSettled: () => undefined },
    );
    const charged = await Promise.all(
      Array.from({ length: CALLERS_A_NODE }, (_, caller) => call(books, `${number}_${caller}`, caller)),
    );
    await books.close();
    await node.close();
    return charged.reduce((sum, count) => sum + count, 0);
  }

  test('takes none of what they write for a violation, and comes to the end of it', async () => {
    let is_over = false;
    const load = Promise.all(Array.from({ length: NODES }, (_, number) => serve(number))).finally(() => {
      is_over = true;
    });
    const reports: AuditReport[] = [];
    const auditing = async (audit: () => Promise<AuditReport>) => {
      while (!is_over) reports.push(await audit());
    };
    const pool = await copy.anotherPool();
    await Promise.all([
      load,
      auditing(() => runAudit(db)),
      auditing(() => continueAudit(pool, { now_ms: NOW_MS })),
    ]);
    const failed = ({ checks }: AuditReport) => checks.filter(({ violations }) => violations.length > 0);
    expect(reports.flatMap(failed)).toEqual([]);
    expect(reports.filter(({ after_entry_id }) => after_entry_id > 0).length).toBeGreaterThan(1);

    expect((await continueAudit(db, { now_ms: NOW_MS })).ok).toBe(true);
    const entries = await db.select().from(ledgerEntries);
    expect(await checkpoint()).toBe(Math.max(...entries.map(({ id }) => id)));
    expect(failed(await runAudit(db, { ended_before_ms: NOW_MS + 1 }))).toEqual([]);
    const charges = (await load).reduce((sum, count) => sum + count, 0);
    expect(entries.filter(({ kind }) => kind === 'charge')).toHaveLength(charges);
    const kept = await db.select().from(organizations);
    expect(kept.every(({ held_micros, open_holds }) => held_micros === 0 && open_holds === 0)).toBe(true);
  }, 300_000);

  /** A payment that has its number, and is committed only when told so; another, of a later number, is committed. */
  async function paymentsOutOfOrder(): Promise<() => Promise<void>> {
    const [early, late] = accounts;
    if (early === undefined || late === undefined) throw new Error('there is no account');
    const { promise: told, resolve: commit } = Promise.withResolvers<void>();
    const { promise: written, resolve: isWritten } = Promise.withResolvers<void>();
    const pool = await copy.anotherPool();
    const slow = pool.transaction(async (transaction) => {
      await topUp(transaction, early, 'pay_early', CREDIT_MICROS);
      isWritten();
      await told;
    });
    await written;
    await pay(late, 'pay_late');
    return () => {
      commit();
      return slow;
    };
  }

  const checkpoint = async () => (await db.select().from(auditCheckpoints))[0]?.last_entry_id;
  async function expectClean(): Promise<void> {
    for (const whole of [false, true]) {
      const { checks } = await continueAudit(db, { now_ms: NOW_MS, whole });
      expect(checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
    }
  }

  test('waits for what has a number already, and comes to the end of it', async () => {
    const commit = await paymentsOutOfOrder();
    const audit = continueAudit(db, { now_ms: NOW_MS });
    await commit();
    expect((await audit).ok).toBe(true);
    expect(await checkpoint()).toBe(Math.max(...(await db.select().from(ledgerEntries)).map(({ id }) => id)));
    await expectClean();
  });

  test('comes no further while a transaction does not end that has a number already', async () => {
    expect((await continueAudit(db, { now_ms: NOW_MS })).ok).toBe(true);
    const before = await checkpoint();
    const commit = await paymentsOutOfOrder();
    expect((await continueAudit(db, { now_ms: NOW_MS, writers_deadline_ms: 50 })).ok).toBe(true);
    expect(await checkpoint()).toBe(before);
    await commit();
    await expectClean();
    expect(await checkpoint()).toBeGreaterThan(before ?? 0);
  });
});
