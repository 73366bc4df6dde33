import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connectPostgres, type PgConnection, SettingRefused } from '../../db/postgres/connection.ts';
import { sqlState } from '../../db/postgres/errors.ts';
import { alerts, apiKeys, organizations } from '../../db/postgres/schema.ts';
import { ServedPostgresDatabase } from '../../db/postgres/served-postgres-database.ts';
import { LimitRefusals } from '../../src/alerts/limit-refusals.ts';
import { AlertRuns } from '../../src/alerts/runs.ts';
import { CONNECTIONS_TO_DATABASE_MIN } from '../../src/config/settings.ts';
import { createLog } from '../../src/log/log.ts';
import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS, systemClock } from '../../src/time/clock.ts';
import { noProblemsExpected } from '../alerts/support.ts';
import { MovableClock } from '../support/clock.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import {
  administer,
  isPostgresMissing,
  type PostgresServer,
  sharedPostgres,
  startPostgres,
} from '../support/postgres.ts';
import { rejection } from '../support/rejection.ts';
import { accountNumber, addAccounts, HELD_MICROS, LedgerNode } from './ledger-load.ts';

setDefaultTimeout(120_000);

const LIMITS = { requests_per_minute: 10, tokens_per_minute: 1_000 };

/** How many sessions of a node's requests wait for a lock. */
async function waiting({ db }: PgConnection): Promise<number> {
  const sessions = `SELECT pid FROM pg_stat_activity WHERE application_name = 'tds requests' AND wait_event_type = 'Lock'`;
  return (await db.$client.unsafe(sessions)).length;
}

async function settingOf({ db }: PgConnection, name: string): Promise<unknown> {
  const [row] = await db.$client.unsafe('SELECT current_setting($1) AS value', [name]);
  return row?.value;
}

/** A node with the fewest connections. */
function openNode(url: string, clock: Clock = systemClock): Promise<ServedPostgresDatabase> {
  return ServedPostgresDatabase.open(
    { url, connections: CONNECTIONS_TO_DATABASE_MIN, version: 'test' },
    {
      clock,
      process_id: `proc_${crypto.randomUUID()}`,
      log: createLog('silent'),
      report: () => undefined,
      onCommit: () => undefined,
    },
  );
}

test.skipIf(isPostgresMissing())(
  'a node with the fewest connections reads the catalog while all else waits for the row of one organization',
  async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [locked = accountNumber(0), free = accountNumber(1)] = await addAccounts(observer, 2);
    const asked = (account: typeof locked, request_id: string) => ({
      ...account,
      request_id,
      amount_micros: HELD_MICROS,
      at_ms: Date.now(),
    });
    const ended = await LedgerNode.start(database.url, 'proc_ended');
    await ended.books.hold(asked(locked, 'req_of_nobody'));
    await ended.lease.close();
    await ended.connection.close();
    const node = await openNode(database.url);
    const of_locked = eq(organizations.id, locked.organization_id);
    let answered = 0;
    const waits: Promise<unknown>[] = [];
    const wait = (work: Promise<unknown>) => {
      const count = () => {
        answered += 1;
      };
      waits.push(work.then(count, count));
    };
    await observer.db.transaction(async (blocker) => {
      await blocker.select().from(organizations).where(of_locked).for('update');
      wait(node.books.hold(asked(locked, 'req_locked')));
      // It goes past the other, which is set aside then, on a connection of its own.
      await node.books.hold(asked(free, 'req_free'));
      wait(node.books.recover());
      wait(
        node.store.transaction(({ accounts }) => accounts.renameOrganization(locked.organization_id, 'new')),
      );
      await eventually(async () => (await waiting(observer)) >= 3 || answered > 0);
      expect((await node.catalog.allModels()).length).toBe(0);
      expect(answered).toBe(0);
      // The metrics show the transaction of the pool that waits for the row. The ledger waits on other connections.
      const { pool, bytes, free_bytes } = await node.state();
      expect(pool).toEqual({ connections_max: CONNECTIONS_TO_DATABASE_MIN - 4, under_way: 1 });
      expect(bytes).toBeGreaterThan(1_000_000);
      expect(free_bytes).toBeNull();
    });
    await Promise.all(waits);
    await node.close();
  },
);

test.skipIf(isPostgresMissing())(
  'a node is not ready while its rate windows get no connection, and is ready without a request once they get one',
  async () => {
    await using database = await takeDatabase();
    const { db } = await database.connect({ connections: 1 });
    const role = `node_${database.name}`;
    await db.$client.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'x';
      GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
    const { port } = await sharedPostgres();
    const node = await openNode(`postgres://${role}:x@127.0.0.1:${port}/${database.name}`);
    await node.write();
    await db.$client.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
    await db.$client.unsafe(`SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
      WHERE usename = '${role}' AND application_name = 'tds windows'`);
    // The end of the connection is read before, so that this opens another one.
    await eventually(async () => sqlState(await node.write().catch((error) => error)) === '53300');
    await expect(node.windows.admit('org_1', LIMITS, 1)).rejects.toThrow();
    expect((await node.catalog.allModels()).length).toBe(0);
    await db.$client.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    await node.write();
    await node.close();
    await db.$client.unsafe(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  },
);

test.skipIf(isPostgresMissing())(
  "nodes whose clocks differ raise an alert once, and end none of each other's",
  async () => {
    await using database = await takeDatabase();
    const connection = await database.connect({ connections: 1 });
    const { db } = connection;
    const [early = accountNumber(0), late = accountNumber(1)] = await addAccounts(connection, 2);
    const end = (api_key_id: string, after_ms: number) =>
      db
        .update(apiKeys)
        .set({ expires_at_ms: Date.now() + 7 * DAY_MS + after_ms })
        .where(eq(apiKeys.id, api_key_id));
    await end(early.api_key_id, -30 * MINUTE_MS);
    await end(late.api_key_id, 30 * MINUTE_MS);
    const nodes: ServedPostgresDatabase[] = [];
    for (const ahead_ms of [HOUR_MS, -HOUR_MS]) {
      const clock = new MovableClock();
      clock.stepWallClock(ahead_ms);
      nodes.push(await openNode(database.url, clock));
    }
    for (const { store, now_ms } of [...nodes, ...nodes]) {
      const limit_refusals = new LimitRefusals();
      await new AlertRuns({ store, now_ms, limit_refusals, problems: noProblemsExpected, mail: null }).run();
    }
    const raised = await db.select({ of: alerts.subject_id, ended_at_ms: alerts.ended_at_ms }).from(alerts);
    expect(raised).toEqual([{ of: early.api_key_id, ended_at_ms: null }]);
    for (const node of nodes) await node.close();
  },
);

describe.skipIf(isPostgresMissing())(
  'sessions of a pool that was told what its server had wait for the disk as it did then',
  () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server.remove());

    test.each([
      ['on', '5MB'],
      ['remote_apply', '6MB'],
    ])('%s, whatever a reload says', async (accepted, work_mem) => {
      const set = (name: string, value: string) =>
        administer(server, `ALTER SYSTEM SET ${name} = '${value}'`);
      await set('synchronous_commit', accepted);
      await server.stop('fast');
      await server.start();
      const url = server.url('postgres');
      const found = await connectPostgres(url, { connections: 1 });
      await found.close();
      const { synchronous_commit } = found;
      const pool = await connectPostgres(url, { connections: 1, synchronous_commit });
      await set('synchronous_commit', 'off');
      await set('work_mem', work_mem);
      await administer(server, 'SELECT pg_reload_conf()');
      // The session has read the file again.
      await eventually(async () => (await settingOf(pool, 'work_mem')) === work_mem);
      expect(await settingOf(pool, 'synchronous_commit')).toBe(accepted);
      await rejection(Promise.resolve(pool.db.execute('SELECT pg_terminate_backend(pg_backend_pid())')));
      // The next session is opened by the new file.
      expect(await settingOf(pool, 'synchronous_commit')).toBe(accepted);
      await pool.close();
      expect(await rejection(connectPostgres(url))).toBeInstanceOf(SettingRefused);
    });
  },
);
