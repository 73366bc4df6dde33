import { SQL } from 'bun';
import type { ExtractTablesWithRelations } from 'drizzle-orm';
import { type BunSQLQueryResultHKT, drizzle } from 'drizzle-orm/bun-sql';
import type { PgDatabase } from 'drizzle-orm/pg-core';
import { systemErrorCode } from '../../src/system-error-code.ts';
import { boundedClient, type ClientBounds } from './bounded-client.ts';
import * as schema from './schema.ts';

/** What runs statements: the pool, where each is a transaction of its own, or one open transaction. */
export type Executor = PgDatabase<
  BunSQLQueryResultHKT,
  typeof schema,
  ExtractTablesWithRelations<typeof schema>
>;

/** The pool of connections, as drizzle sees it. */
export type PgDb = Executor & { readonly $client: SQL };

/** A setting of the server with which the ledger is not safe. */
export class SettingRefused extends Error {
  override readonly name = 'SettingRefused';
}

/**
 * An address that names no PostgreSQL database; the message goes on after its place. It is not quoted, because it may
 * hold a password.
 */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/** How a node connects. */
export interface PgOptions {
  /** How many connections the pool opens at most. */
  readonly connections?: number;
  /** How long statements and transactions may take; for ever by default, as commands and audits may need it. */
  readonly bounds?: ClientBounds;
  /** What the server lists the connections as (`pg_stat_activity`). */
  readonly application_name?: string;
}

/** A pool of connections to one PostgreSQL database. */
export interface PgConnection {
  readonly db: PgDb;
  /** Where the database is, for messages: without user name and password. */
  readonly place: string;
  /** Transactions and single statements that have begun and have no answer; 0 where nothing is bounded. */
  underWay(): number;
  /** Ends all connections; statements under way are cut off. */
  close(): Promise<void>;
}

const CONNECTIONS = 10;
const CONNECTION_TIMEOUT_S = 5;
/** Connections are made anew from time to time, so that they follow a name that points to another server. */
const CONNECTION_LIFETIME_S = 600;
/** The server's own end of a statement arrives so much later at most. */
const SERVER_LATE_MS = 1_000;

/** What every session sets, so that no process of ours stands in the way of the others when it is paused or cut off. */
const SESSION_SETTINGS = {
  // The rules of the store are made for it, whatever the database's own default is.
  default_transaction_isolation: 'read committed',
  lock_timeout: '10s',
  // Sooner than others give up waiting for the locks of a paused process.
  idle_in_transaction_session_timeout: '5s',
  // The server finds in about 15 s that the network was cut, and frees the locks.
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 3,
  tcp_keepalives_count: 3,
};

/**
 * Connects to a PostgreSQL database (`postgres://user:password@host:port/database`), whatever schema it has. The pool
 * replaces connections that break. A query that takes long must not go to the pool by itself: others wait behind it on
 * its connection. A transaction has a connection of its own.
 *
 * Throws what the client throws (`describePostgresError` explains it), `AddressRefused`, and `SettingRefused` where the
 * server would lose what it has acknowledged.
 */
export async function connectPostgres(url: string, options: PgOptions = {}): Promise<PgConnection> {
  if (!isPostgresAddress(url)) throw new AddressRefused('not an address of PostgreSQL');
  try {
    return await openPool(url, options);
  } catch (error) {
    throw withReason(error);
  }
}

/** What runs statements on a client, or on one connection of it. */
export function executorOn(client: SQL): PgDb {
  return drizzle(client, { schema });
}

async function openPool(url: string, options: PgOptions): Promise<PgConnection> {
  const { bounds } = options;
  const make = () =>
    new SQL({
      url,
      adapter: 'postgres',
      max: options.connections ?? CONNECTIONS,
      connectionTimeout: CONNECTION_TIMEOUT_S,
      maxLifetime: CONNECTION_LIFETIME_S,
      connection: {
        application_name: options.application_name ?? 'tds',
        // The server's end of a statement leaves the connection usable; ours is for a server that does not answer.
        ...(bounds === undefined ? {} : { statement_timeout: bounds.statement_ms }),
        ...SESSION_SETTINGS,
      },
    });
  const { client, underWay } =
    bounds === undefined
      ? { client: make(), underWay: () => 0 }
      : boundedClient(make, { ...bounds, statement_ms: bounds.statement_ms + SERVER_LATE_MS });
  try {
    await requireSettings(client);
    return {
      db: executorOn(client),
      place: databasePlace(url),
      underWay,
      close: () => client.close({ timeout: 0 }),
    };
  } catch (error) {
    await client.close({ timeout: 0 });
    throw error;
  }
}

function withReason(error: unknown): unknown {
  if (systemErrorCode(error)?.startsWith('ERR_INVALID_ARG') !== true) return error;
  return new AddressRefused('named with an sslmode or an sslrootcert that cannot be used', { cause: error });
}

/** Whether a text is an address that `connectPostgres` takes. */
export function isPostgresAddress(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null || !['postgres:', 'postgresql:'].includes(parsed.protocol)) return false;
  if (!hasAuthority(parsed)) return false;
  try {
    // The client decodes them, and would throw what says nothing.
    for (const part of [parsed.username, parsed.password, parsed.pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** Where a database is: host, port and name of its address, without user name and password. */
export function databasePlace(url: string): string {
  const parsed = URL.parse(url);
  // Whatever cannot be read is not repeated: it may hold the password.
  if (parsed === null || !hasAuthority(parsed)) return 'the database';
  const socket = parsed.searchParams.get('path') ?? parsed.searchParams.get('host');
  return `postgres://${socket ?? parsed.host}${parsed.pathname}`;
}

/** Whether it says which part is the password. Without the two slashes that may stand anywhere. */
function hasAuthority({ href, protocol }: URL): boolean {
  return href.startsWith(`${protocol}//`);
}

async function requireSettings(client: SQL): Promise<void> {
  const [settings] = await client<
    { fsync: string; synchronous_commit: string; encoding: string }[]
  >`SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('server_encoding') AS encoding`;
  if (settings === undefined) throw new SettingRefused('the server does not say how it is set');
  if (settings.fsync !== 'on') throw new SettingRefused(`the server has fsync = ${settings.fsync}, not on`);
  // With `local`, what a synchronous standby does not have yet is acknowledged, and lost when the standby takes over.
  if (['off', 'local'].includes(settings.synchronous_commit))
    throw new SettingRefused(`the server has synchronous_commit = ${settings.synchronous_commit}, not on`);
  if (settings.encoding !== 'UTF8')
    throw new SettingRefused(`the database has the encoding ${settings.encoding}, not UTF8`);
}
