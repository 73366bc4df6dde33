import { describe, expect, test } from 'bun:test';
import type { ReservedSQL } from 'bun';
import type { PgConnection } from '../../db/postgres/connection.ts';
import { sqlState } from '../../db/postgres/errors.ts';
import { LedgerUnavailable } from '../../db/postgres/ledger-batches.ts';
import { writeLedger } from '../../db/postgres/ledger-transaction.ts';
import { ledgerEntries } from '../../db/postgres/schema.ts';
import { HoldNotOpen } from '../../src/ledger/errors.ts';
import { causesOf } from '../../src/problems/causes.ts';
import { type Account, usageOf } from '../ledger/support.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import {
  isPostgresMissing,
  type PostgresServer,
  sharedPostgres,
  startPostgres,
} from '../support/postgres.ts';
import { type Cut, PostgresProxy } from '../support/postgres-proxy.ts';
import { rejection } from '../support/rejection.ts';
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
} from './ledger-load.ts';

/** Clients' answers match the stored rows, whatever happens to connections and to the server. */

const TEST_TIMEOUT_MS = 120_000;
const CALLERS = 16;
/** One organization that every request is of, and then many. */
const SPREADS = [1, 20];

/** Cuts every connection of the nodes, whatever it is doing. */
async function cutAll({ db }: PgConnection, node_ids: readonly string[]): Promise<void> {
  const cut = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1';
  for (const id of node_ids) await db.$client.unsafe(cut, [id]);
}

/** More than a node releases in one transaction. */
const LOST_ENDS = 501;

describe.skipIf(isPostgresMissing())('the books of two nodes', () => {
  test.each(SPREADS)(
    'charge exact totals from %d organizations at once',
    async (count) => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, count);
      const nodes = await Promise.all(['proc_1', 'proc_2'].map((id) => LedgerNode.start(database.url, id)));
      await Promise.all(
        nodes.map((node) => node.load(accounts, CALLERS, () => node.told.charged.size >= 500)),
      );
      for (const node of nodes) await node[Symbol.asyncDispose]();
      for (const { told, problems } of nodes) {
        expect([...new Set([...told.failed.values()].map(String))]).toEqual(['Error: the model failed']);
        expect(problems).toEqual([]);
      }
      await expectExact(
        observer,
        accounts,
        nodes.map(({ told }) => told),
      );
    },
    TEST_TIMEOUT_MS,
  );

  test.each(SPREADS)(
    'charge exactly what clients are told while all connections are cut again and again (%d organizations)',
    async (count) => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, count);
      const ids = ['proc_1', 'proc_2'];
      const nodes = await Promise.all(ids.map((id) => LedgerNode.start(database.url, id)));
      let is_over = false;
      const loads = nodes.map((node) => node.load(accounts, CALLERS, () => is_over));
      for (let round = 0; round < 25; round += 1) {
        await Promise.all(nodes.map((node) => node.told.chargedMore(1 + 7 * (round % 5))));
        await cutAll(observer, ids);
      }
      is_over = true;
      await Promise.all(loads);
      await Promise.all(nodes.map(({ books }) => books.whenSettled()));
      await Promise.all(nodes.map((node) => node.lease.renew()));
      expect(nodes.map(({ lease }) => lease.hasLock)).toEqual([true, true]);
      for (const node of nodes) await node[Symbol.asyncDispose]();
      await expectExact(
        observer,
        accounts,
        nodes.map(({ told }) => told),
      );
      // Nobody was told of an error: every cut was mended in time.
      for (const { told } of nodes)
        expect([...new Set([...told.failed.values()].map(String))]).toEqual(['Error: the model failed']);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'hold anew for a request that asks again in the transaction that frees its abandoned hold',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const [account] = await addAccounts(observer, 1);
      if (account === undefined) throw new Error('no account');
      await using node = await LedgerNode.start(database.url, 'proc_1');
      const { organization_id, project_id } = account;
      const at_ms = Date.now();
      const request = { organization_id, project_id, amount_micros: HELD_MICROS, at_ms, request_id: 'req_1' };
      await node.books.hold(request);
      // As after a COMMIT without an answer: both may have placed the stored hold.
      const write = { kind: 'hold', request } as const;
      const asked = [true, false].map((is_abandoned) => ({ write, is_doubtful: true, is_abandoned }));
      const connection = await observer.db.$client.reserve();
      const result = await writeLedger(connection, asked, node.id).finally(() => connection.release());
      const held = result.ok ? result.written[1] : undefined;
      if (held?.kind !== 'held' || !held.result.held) throw new Error('no hold', { cause: result });
      await node.charge(account, held.result.hold);
      await expectExact(observer, [account], [node.told]);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'free what a living node held, where a restored database has lost the end, and nothing else of it',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 1);
      await using node = await LedgerNode.start(database.url, 'proc_1', SHORT_LEASE);
      const open = await node.place(accountNumber(0), 'req_open');
      // The state before other requests ended, as of a backup, or of a standby that lagged behind.
      for (const statement of [
        `INSERT INTO ledger_entries (organization_id, project_id, kind, credit_delta_micros, held_delta_micros,
          request_id, month, created_at_ms, process_id)
          SELECT organization_id, project_id, kind, 0, held_delta_micros, 'req_ended_' || number, month,
            created_at_ms, process_id
          FROM ledger_entries, generate_series(1, ${LOST_ENDS}) AS number WHERE id = ${open.entry_id}`,
        `UPDATE organizations SET held_micros = held_micros * ${1 + LOST_ENDS}, open_holds = ${1 + LOST_ENDS}`,
        `UPDATE project_months SET held_micros = held_micros * ${1 + LOST_ENDS}`,
      ])
        await observer.db.execute(statement);
      await cutAll(observer, ['proc_1']);
      await eventually(() => node.released.length > 0);
      expect(node.released).toEqual([['proc_1', LOST_ENDS]]);
      await node.charge(accountNumber(0), open);
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );

  test.each([
    ['the same organization', 0],
    ['another organization', 1],
  ])(
    'charge nobody for the hold of a request of %s, to which a restored database gave its number',
    async (_, owner) => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 2);
      await using node = await LedgerNode.start(database.url, 'proc_1');
      const lost = await node.place(accountNumber(0), 'req_lost');
      // The state before that hold, as of a backup, or of a standby that lagged behind.
      for (const statement of [
        `DELETE FROM ledger_entries WHERE id = ${lost.entry_id}`,
        `ALTER TABLE ledger_entries ALTER COLUMN id RESTART WITH ${lost.entry_id}`,
        'UPDATE organizations SET held_micros = 0, open_holds = 0',
        'DELETE FROM project_months',
      ])
        await observer.db.execute(statement);
      const other = await node.place(accountNumber(owner), 'req_other');
      expect(other.entry_id).toBe(lost.entry_id);
      expect(await rejection(node.charge(accountNumber(0), lost))).toBeInstanceOf(HoldNotOpen);
      await node.books.release(lost, null);
      expect(node.books.open.holds).toBe(1);
      await node.charge(accountNumber(owner), other);
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'charge exactly what clients are told while the server crashes and starts again',
    async () => {
      const server = await startPostgres();
      try {
        await crashUnderLoad(server);
      } finally {
        await server.remove();
      }
    },
    TEST_TIMEOUT_MS,
  );
});

/** For a load of one request. */
function once(): () => boolean {
  let asked = 0;
  return () => {
    asked += 1;
    return asked > 1;
  };
}

async function crashUnderLoad(server: PostgresServer): Promise<void> {
  const { url, accounts } = await ledgerDatabase(server, 'crashing', 3);
  const nodes = await Promise.all(
    // A short deadline, so that some requests fail while the server is away.
    ['proc_1', 'proc_2'].map((id) => LedgerNode.start(url, id, {}, { deadline_ms: 200 })),
  );
  let is_over = false;
  const loads = nodes.map((node) => node.load(accounts, CALLERS, () => is_over));
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(nodes.map((node) => node.told.chargedMore(40)));
    await server.stop('immediate');
    // A new request is refused in time. Those whose commit was under way wait for what became of it.
    const failed = nodes.map(({ told }) => told.failed.size);
    await Promise.all(nodes.map((node) => node.load(accounts, 1, once())));
    expect(nodes.map(({ told }, index) => told.failed.size > (failed[index] ?? 0))).toEqual([true, true]);
    await server.start();
  }
  await Promise.all(nodes.map((node) => node.told.chargedMore(40)));
  is_over = true;
  await Promise.all(loads);
  await Promise.all(nodes.map(({ books }) => books.whenSettled()));
  for (const node of nodes) await node[Symbol.asyncDispose]();
  await expectExactAt(url, accounts, nodes);
}

describe.skipIf(isPostgresMissing())('a deadlock', () => {
  test(
    'with a transaction that locks in another order is not seen by a client',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 2);
      await using node = await LedgerNode.start(database.url, 'proc_1');
      const other = await observer.db.$client.reserve();
      const lock = (number: number) =>
        other.unsafe('SELECT id FROM organizations WHERE id = $1 FOR UPDATE', [
          accountNumber(number).organization_id,
        ]);
      const waiting = `SELECT pid FROM pg_stat_activity WHERE application_name = 'proc_1' AND wait_event_type = 'Lock'`;
      let deadlocks_of_node = 0;
      while (deadlocks_of_node < 3) {
        await other.unsafe('BEGIN');
        await lock(1);
        const requests = accounts.map((account) => node.request(account));
        await eventually(async () => (await observer.db.$client.unsafe(waiting)).length !== 0);
        // The first waiter checks for a deadlock first, and is rolled back. This is mostly the node.
        await lock(0).then(
          () => {
            deadlocks_of_node += 1;
          },
          (error: unknown) => expect(sqlState(error)).toBe('40P01'),
        );
        await other.unsafe('ROLLBACK');
        await Promise.all(requests);
      }
      other.release();
      const reasons = [...node.told.failed.values()].map(String);
      expect(reasons.filter((reason) => reason !== 'Error: the model failed')).toEqual([]);
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );
});

describe.skipIf(isPostgresMissing())('a connection that is cut', () => {
  const CUTS: readonly Cut[] = ['before the commit', 'after the commit'];
  test.each(CUTS)('%s places a hold once, charges once, and frees once', async (cut) => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const accounts = await addAccounts(observer, 1);
    using proxy = new PostgresProxy((await sharedPostgres()).port);
    await using node = await LedgerNode.start(proxy.url(database.url), 'proc_1');
    const [account] = accounts;
    if (account === undefined) throw new Error('no account');
    // The hold of each is cut, then the end of each; every eighth request is released.
    for (let request = 0; request < 8; request += 1) {
      proxy.cutNext(cut);
      await node.request(account, () => proxy.cutNext(cut));
    }
    expect(proxy.cuts).toBe(16);
    expect([node.told.charged.size, node.told.failed.size]).toEqual([7, 1]);
    expect((await observer.db.select().from(ledgerEntries)).length).toBe(1 + 2 * 7);
    await expectExact(observer, accounts, [node.told]);
  });
});

describe.skipIf(isPostgresMissing())('connections that hang', () => {
  test(
    'are given up one after the other, also before the first statement of a batch',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 1);
      const [account] = accounts;
      if (account === undefined) throw new Error('no account');
      // A busy machine makes a new connection in that time, and all that hang are given up before the deadline.
      const bounds = { transaction_ms: 500, deadline_ms: 20_000 };
      await using node = await LedgerNode.start(database.url, 'proc_1', {}, bounds);
      expect(node.told.charged).toContain(await node.request(account));
      const backends = await observer.db.$client.unsafe<{ pid: number }[]>(
        'SELECT pid FROM pg_stat_activity WHERE application_name = $1',
        ['proc_1'],
      );
      // That of the batches, and those of the pool that it would get next.
      expect(backends.length).toBeGreaterThan(1);
      for (const { pid } of backends) process.kill(pid, 'SIGSTOP');
      try {
        expect(node.told.charged).toContain(await node.request(account));
      } finally {
        for (const { pid } of backends) process.kill(pid, 'SIGCONT');
      }
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );
});

/** The cause that the log tells of a request whose organization's row was locked. */
const REFUSED_FOR_LOCK = {
  error: 'LedgerUnavailable',
  message: expect.stringContaining("the organization's row is locked"),
};

/** Locks the row of each, one after the other, in a transaction that is left open. */
async function lockRows({ db }: PgConnection, accounts: readonly Account[]): Promise<ReservedSQL> {
  const session = await db.$client.reserve();
  await session.unsafe('SET idle_in_transaction_session_timeout = 0');
  await session.unsafe('BEGIN');
  for (const { organization_id } of accounts)
    await session.unsafe('SELECT id FROM organizations WHERE id = $1 FOR UPDATE', [organization_id]);
  return session;
}

async function unlock(session: ReservedSQL): Promise<void> {
  await session.unsafe('ROLLBACK');
  session.release();
}

describe.skipIf(isPostgresMissing())('a row of an organization that another session keeps locked', () => {
  test.each([1, 3])(
    'holds up no other organization (%d locked of 20)',
    async (locked_count) => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 20);
      const locked = accounts.slice(5, 5 + locked_count);
      const others = accounts.filter((account) => !locked.includes(account));
      await using node = await LedgerNode.start(database.url, 'proc_1');
      const of_locked: string[] = [];
      let is_over = false;
      const askAll = (asked: readonly Account[]) =>
        Promise.all(
          asked.map(async (account) => {
            while (!is_over) of_locked.push(await node.request(account));
          }),
        );
      const loads = [node.load(others, CALLERS, () => is_over), askAll([...locked, ...locked])];
      await node.told.chargedMore(100);
      const lock = await lockRows(observer, locked);
      // Commits just before the lock may be answered after it, so only refusals count.
      const refused = () =>
        [...node.told.failed.values()].filter((error) => error instanceof LedgerUnavailable).length;
      // Those of the locked rows are refused: the others go on for as long as that takes, and after it.
      while (refused() < 2 * locked_count) await node.told.chargedMore(1);
      await node.told.chargedMore(200);
      await unlock(lock);
      // Holds that no charge could end are released before.
      await node.books.whenSettled();
      const charged = () => of_locked.filter((request_id) => node.told.charged.has(request_id)).length;
      const charged_before = charged();
      await eventually(() => charged() >= charged_before + 10);
      is_over = true;
      await Promise.all(loads);
      await node.books.whenSettled();
      const failed = [...node.told.failed].filter(([, error]) => String(error) !== 'Error: the model failed');
      expect(failed.filter(([request_id]) => !of_locked.includes(request_id))).toEqual([]);
      expect(failed.length).toBeGreaterThanOrEqual(2 * locked_count);
      expect(failed.filter(([, error]) => !(error instanceof LedgerUnavailable))).toEqual([]);
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'is what a refusal of it names, also where nothing else is written and a connection broke before',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const [account] = await addAccounts(observer, 1);
      if (account === undefined) throw new Error('no account');
      const { organization_id, project_id } = account;
      using proxy = new PostgresProxy((await sharedPostgres()).port);
      const url = proxy.url(database.url);
      await using node = await LedgerNode.start(url, 'proc_1', {}, { deadline_ms: 3_000 });
      const lock = Promise.withResolvers<ReservedSQL>();
      proxy.beforeCut = async () => lock.resolve(await lockRows(observer, [account]));
      proxy.cutNext('after the commit');
      const request = { organization_id, project_id, amount_micros: HELD_MICROS, at_ms: Date.now() };
      const refused = ['req_1', 'req_2'].map((request_id) =>
        rejection(node.books.hold({ ...request, request_id })),
      );
      const session = await lock.promise;
      for (const error of refused) expect(causesOf(await error)).toMatchObject([REFUSED_FOR_LOCK]);
      await unlock(session);
      await node.books.whenSettled();
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'leaves a charge doubtful whose commit was not answered, until it is known',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const accounts = await addAccounts(observer, 2);
      const [account, other] = accounts;
      if (account === undefined || other === undefined) throw new Error('no account');
      using proxy = new PostgresProxy((await sharedPostgres()).port);
      await using node = await LedgerNode.start(
        proxy.url(database.url),
        'proc_1',
        {},
        { deadline_ms: 3_000 },
      );
      const at_ms = Date.now();
      const { organization_id, project_id } = account;
      const request = { organization_id, project_id, amount_micros: HELD_MICROS, at_ms };
      const answer = await node.books.hold({ ...request, request_id: 'req_doubtful' });
      if (!answer.held) throw new Error(answer.refusal);
      const lock = Promise.withResolvers<ReservedSQL>();
      proxy.beforeCut = async () => lock.resolve(await lockRows(observer, [account]));
      proxy.cutNext('after the commit');
      let is_answered = false;
      const usage = (status: number, cost_micros: number) =>
        usageOf(account, 'req_doubtful', at_ms, status, cost_micros);
      const charge = node.books
        .charge(answer.hold, COST_MICROS, usage(200, COST_MICROS), usage(503, 0))
        .finally(() => {
          is_answered = true;
        });
      const session = await lock.promise;
      // Asked later, so that the deadline of the charge is over when these are refused.
      for (const request_id of ['req_1', 'req_2']) {
        const refused = rejection(node.books.hold({ ...request, request_id }));
        const charged = await node.request(other);
        expect(node.told.charged).toContain(charged);
        expect(causesOf(await refused)).toMatchObject([REFUSED_FOR_LOCK]);
        expect(is_answered).toBe(false);
      }
      await unlock(session);
      await charge;
      node.told.charge('req_doubtful');
      expect(proxy.cuts).toBe(1);
      await expectExact(observer, accounts, [node.told]);
    },
    TEST_TIMEOUT_MS,
  );
});
