import { sql } from 'drizzle-orm';
import type { DatabaseState, ServedDatabase, ServingParts } from '../../src/store/database.ts';
import { FairReader } from '../../src/usage/fair-reader.ts';
import { auditedAt_ms } from './audit.ts';
import { connectPostgres, type PgConnection, type PgDb } from './connection.ts';
import { isAway } from './failures.ts';
import { PostgresHistoryRuns } from './history-runs.ts';
import { JoinedCatalogReads } from './joined-catalog-reads.ts';
import { PostgresMovementReader } from './movement-reader.ts';
import { type LeaseTimes, NodeLease } from './node-lease.ts';
import { PostgresBooks } from './postgres-books.ts';
import { PostgresStore } from './postgres-store.ts';
import { PostgresRateWindows } from './rate-windows.ts';
import { beginRun } from './scheduled-runs.ts';
import { signInDatabase } from './sign-in-database.ts';
import { PostgresUsageReader } from './usage-reader.ts';
import { writeProbe } from './write-probe.ts';

/** The limits of requests. A transaction of the console may have to wait for others. */
export const REQUEST_BOUNDS = { statement_ms: 4_000, transaction_ms: 30_000 };
/** The limits of charts and pages of usage. `readOneState` bounds each statement. */
const READER_BOUNDS = { statement_ms: 60_000, transaction_ms: 120_000 };
const READER_CONNECTIONS = 2;
/** The limits of an audit of years of history, and of the roll-up of one batch after the other. */
const HISTORY_BOUNDS = { statement_ms: 3_600_000, transaction_ms: 7_200_000 };
const HISTORY_CONNECTIONS = 2;

/** The connections for requests that the lease, the ledger and the ends of holds may keep (`Session`). */
const KEPT_CONNECTIONS = 4;

/** Options of a node that serves. */
export interface NodeOptions {
  readonly url: string;
  /** The number of connections for requests. Others are for one purpose each. */
  readonly connections: number;
  /** The version of this program. */
  readonly version: string;
  /** The time of the rate windows in microseconds, for tests; by default the database's clock. */
  readonly windows_time_us?: () => number;
  /** The time that nodes share, for tests; by default the database's clock. */
  readonly now_ms?: () => number;
  /** The times of the lease, for tests. */
  readonly lease_times?: LeaseTimes;
}

async function databaseBytes(db: PgDb): Promise<number> {
  const [row] = await db.execute<{ bytes: string }>(
    sql`SELECT pg_database_size(current_database())::text AS bytes`,
  );
  return Number(row?.bytes);
}

async function databaseTime_ms(db: PgDb): Promise<number> {
  const [row] = await db.execute<{ now_ms: string }>(
    sql`SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS now_ms`,
  );
  return Number(row?.now_ms);
}

/** Resolves with the `synchronous_commit` that the pools of a node keep. Rejects as `connectPostgres` does. */
async function acceptedCommit(url: string): Promise<string> {
  const connection = await connectPostgres(url, {
    connections: 1,
    bounds: REQUEST_BOUNDS,
    application_name: 'tds settings',
  });
  await connection.close();
  return connection.synchronous_commit;
}

interface Pools {
  readonly requests: PgConnection;
  readonly reader: PgConnection;
  readonly history: PgConnection;
}

/**
 * A PostgreSQL database while a node answers requests. Long work has its own connections, and every wait of a request
 * is bounded.
 */
export class ServedPostgresDatabase implements ServedDatabase {
  readonly store: PostgresStore;
  readonly books: PostgresBooks;
  readonly catalog: JoinedCatalogReads;
  readonly windows: PostgresRateWindows;
  readonly reader: FairReader;
  readonly history: PostgresHistoryRuns;
  readonly signIn: ServedDatabase['signIn'];
  readonly write: () => Promise<void>;
  readonly freeBytes = null;
  readonly isAway = isAway;
  readonly now_ms: () => Promise<number>;
  readonly beginsHourlyRun: () => Promise<boolean>;
  readonly auditedAt_ms: () => Promise<number | null>;
  readonly state: () => Promise<DatabaseState>;
  readonly #pools: Pools;
  readonly #lease: NodeLease;

  private constructor(
    { url, connections, windows_time_us, now_ms }: NodeOptions,
    pools: Pools,
    lease: NodeLease,
    parts: ServingParts,
  ) {
    const { clock, log, report, onCommit } = parts;
    const { requests, reader, history } = pools;
    this.#pools = pools;
    this.#lease = lease;
    const beforeWrite = () => lease.requireRenewed();
    this.store = new PostgresStore(requests.db, { beforeWrite });
    this.catalog = new JoinedCatalogReads(this.store.catalog);
    this.books = new PostgresBooks(
      requests.db.$client,
      lease,
      clock,
      {
        onProblem: report,
        onSettled: (holds) => log.warn('the holds that waited to be released are released', { holds }),
      },
      { onCommit },
    );
    this.windows = new PostgresRateWindows({
      connect: () =>
        connectPostgres(url, {
          connections: 1,
          application_name: 'tds windows',
          synchronous_commit: requests.synchronous_commit,
        }),
      clock,
      onProblem: (error) => report('rate_windows', error),
      ...(windows_time_us === undefined ? {} : { time_us: windows_time_us }),
    });
    this.reader = new FairReader(
      new PostgresUsageReader(reader.db),
      new PostgresMovementReader(reader.db),
      READER_CONNECTIONS,
    );
    this.history = new PostgresHistoryRuns(history.db, clock, beforeWrite);
    this.signIn = signInDatabase(requests.db);
    const probe = writeProbe(requests.db);
    this.write = async () => {
      await beforeWrite();
      // Without the windows, which have their own connection, every request is refused.
      await Promise.all([probe(), this.windows.requireAnswer()]);
    };
    this.state = async () => ({
      bytes: await databaseBytes(history.db),
      free_bytes: null,
      pool: { connections_max: connections - KEPT_CONNECTIONS, under_way: requests.underWay() },
    });
    this.now_ms = async () => now_ms?.() ?? (await databaseTime_ms(requests.db));
    this.beginsHourlyRun = async () => {
      await beforeWrite();
      return await beginRun(requests.db, 'hourly');
    };
    this.auditedAt_ms = () => auditedAt_ms(requests.db);
  }

  /** Connects, and registers this process as a node. Rejects with the client's errors. */
  static async open(options: NodeOptions, parts: ServingParts): Promise<ServedPostgresDatabase> {
    const { url, connections, version } = options;
    const opened: PgConnection[] = [];
    const connect = async (given: Parameters<typeof connectPostgres>[1]) => {
      const connection = await connectPostgres(url, given);
      opened.push(connection);
      return connection;
    };
    try {
      const synchronous_commit = await acceptedCommit(url);
      const pools = {
        requests: await connect({
          connections,
          bounds: REQUEST_BOUNDS,
          application_name: 'tds requests',
          synchronous_commit,
        }),
        reader: await connect({
          connections: READER_CONNECTIONS,
          bounds: READER_BOUNDS,
          application_name: 'tds reader',
          synchronous_commit,
        }),
        history: await connect({
          connections: HISTORY_CONNECTIONS,
          bounds: HISTORY_BOUNDS,
          application_name: 'tds history',
          synchronous_commit,
        }),
      };
      const lease = await NodeLease.register(
        pools.requests.db,
        { id: parts.process_id, version },
        {
          onProblem: (error) => parts.report('node', error),
          onReleased: (node, holds) =>
            parts.log.warn(
              node === parts.process_id
                ? 'released holds of this node whose ends the database has lost'
                : 'released the holds that a dead node left open',
              { node, holds },
            ),
        },
        options.lease_times,
      );
      return new ServedPostgresDatabase(options, pools, lease, parts);
    } catch (error) {
      for (const connection of opened) await connection.close();
      throw error;
    }
  }

  startUpkeep(): void {
    // PostgreSQL does its own vacuum and checkpoints.
  }

  async close(): Promise<void> {
    await this.windows.close();
    // Other nodes release the holds that remain, once they find this one dead.
    await this.#lease.close({ open_holds: this.books.left_holds });
    const { requests, reader, history } = this.#pools;
    for (const connection of [requests, reader, history]) await connection.close();
  }
}
