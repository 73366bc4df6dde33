import { SQL } from 'bun';
import { type BunSQLQueryResultHKT, drizzle } from 'drizzle-orm/bun-sql';
import type { PgDatabase } from 'drizzle-orm/pg-core';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { boundedClient, type ClientBounds } from './bounded-client.ts';

/** An executor of statements: the pool, where each statement is its own transaction, or one open transaction. */
export type Executor = PgDatabase<BunSQLQueryResultHKT>;

/** The pool of connections, as drizzle sees it. */
export type PgDb = Executor & { readonly $client: SQL };

/** A setting of the server makes the ledger unsafe. */
export class SettingRefused extends Error {
  override readonly name = 'SettingRefused';
}

/**
 * An address that names no PostgreSQL database. The caller puts the place before the message. The message does not
 * quote the address, which may contain a password.
 */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/** Options of a connection. */
export interface PgOptions {
  /** The largest number of connections in the pool. */
  readonly connections?: number;
  /**
   * The limits of statements and transactions. By default there are none, whatever the server's configuration says,
   * because commands, audits and updates may take long.
   */
  readonly bounds?: ClientBounds;
  /** The connections' name in `pg_stat_activity`. */
  readonly application_name?: string;
  /**
   * The setting that an earlier connection accepted, which a reload of the server's configuration then leaves alone; by
   * default the server's at any time.
   */
  readonly synchronous_commit?: string;
}

/** A pool of connections to one PostgreSQL database. */
export interface PgConnection {
  readonly db: PgDb;
  /** The database's host, port and name for messages, without user name and password. */
  readonly place: string;
  /** The `synchronous_commit` that it found, which is safe. */
  readonly synchronous_commit: string;
  /** Returns the number of transactions and single statements without an answer; 0 if `bounds` is not set. */
  underWay(): number;
  /** Closes all connections. Statements under way reject. */
  close(): Promise<void>;
}

const CONNECTIONS = 10;
const CONNECTION_TIMEOUT_S = 5;
/** Connections are replaced from time to time, so that they follow a DNS name to another server. */
const CONNECTION_LIFETIME_S = 600;
/** The longest delay of the server's own timeout error. */
const SERVER_LATE_MS = 1_000;

/** Settings of every session. With them, a paused or disconnected process does not block the others. */
const SESSION_SETTINGS = {
  // The store depends on this level, and the database's default may differ.
  default_transaction_isolation: 'read committed',
  lock_timeout: '10s',
  // This is shorter than others wait for the locks of a paused process.
  idle_in_transaction_session_timeout: '5s',
  // A connection of the pool may be idle, and its next statement must not fail for it.
  idle_session_timeout: 0,
  // The server notices a cut network within about 15 s, and frees the locks.
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 3,
  tcp_keepalives_count: 3,
};

/**
 * Connects to a PostgreSQL database (`postgres://user:password@host:port/database`) of any schema. The pool replaces
 * broken connections. A long query belongs in a transaction, which has its own connection. In the pool, other
 * statements would wait behind it.
 *
 * Throws the client's errors (`describePostgresError` explains them), and `SettingRefused` if the server could lose
 * acknowledged commits. Throws `AddressRefused` also for a pooler that drops the settings of sessions.
 */
export async function connectPostgres(url: string, options: PgOptions = {}): Promise<PgConnection> {
  if (!isPostgresAddress(url)) throw new AddressRefused('not an address of PostgreSQL');
  try {
    return await openPool(url, options);
  } catch (error) {
    throw withReason(error);
  }
}

/** Returns the executor of a client, or of one of its connections. */
export function executorOn(client: SQL): PgDb {
  return drizzle(client);
}

async function openPool(url: string, options: PgOptions): Promise<PgConnection> {
  const { bounds, synchronous_commit: accepted } = options;
  const make = () =>
    new SQL({
      url,
      adapter: 'postgres',
      max: options.connections ?? CONNECTIONS,
      connectionTimeout: CONNECTION_TIMEOUT_S,
      maxLifetime: CONNECTION_LIFETIME_S,
      connection: {
        application_name: options.application_name ?? 'tds',
        ...(accepted === undefined ? {} : { synchronous_commit: accepted }),
        // The server's timeout leaves the connection usable. Ours is for a server that does not answer.
        statement_timeout: bounds?.statement_ms ?? 0,
        ...SESSION_SETTINGS,
      },
    });
  const { client, underWay } =
    bounds === undefined
      ? { client: make(), underWay: () => 0 }
      : boundedClient(make, { ...bounds, statement_ms: bounds.statement_ms + SERVER_LATE_MS });
  try {
    const synchronous_commit = await requireSettings(client);
    return {
      db: executorOn(client),
      place: databasePlace(url),
      synchronous_commit,
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

/** Returns true if `connectPostgres` accepts the address. */
export function isPostgresAddress(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null || !['postgres:', 'postgresql:'].includes(parsed.protocol)) return false;
  if (!hasAuthority(parsed)) return false;
  try {
    // The client decodes them, and its own error would not be clear.
    for (const part of [parsed.username, parsed.password, parsed.pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** Returns the host, port and name of a database's address, without user name and password. */
export function databasePlace(url: string): string {
  const parsed = URL.parse(url);
  // An unreadable address is not repeated, because it may contain the password.
  if (parsed === null || !hasAuthority(parsed)) return 'the database';
  const socket = parsed.searchParams.get('path') ?? parsed.searchParams.get('host');
  return `postgres://${socket ?? parsed.host}${parsed.pathname}`;
}

/** Returns true if the address has an authority. Without the two slashes, the password could be anywhere. */
function hasAuthority({ href, protocol }: URL): boolean {
  return href.startsWith(`${protocol}//`);
}

/** Resolves with the `synchronous_commit` of the client's sessions. */
async function requireSettings(client: SQL): Promise<string> {
  const [settings] = await client<
    { fsync: string; synchronous_commit: string; encoding: string; lock_timeout: string }[]
  >`SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('server_encoding') AS encoding, current_setting('lock_timeout') AS lock_timeout`;
  if (settings === undefined) throw new SettingRefused('the server does not say how it is set');
  // Such as PgBouncer's, with `ignore_startup_parameters`. It also shares sessions, and so the nodes' locks.
  if (settings.lock_timeout !== SESSION_SETTINGS.lock_timeout)
    throw new AddressRefused('that of a pooler which drops the settings of sessions');
  if (settings.fsync !== 'on') throw new SettingRefused(`the server has fsync = ${settings.fsync}, not on`);
  // With `local`, commits are acknowledged before a synchronous standby has them, and are lost at a failover.
  if (['off', 'local'].includes(settings.synchronous_commit))
    throw new SettingRefused(`the server has synchronous_commit = ${settings.synchronous_commit}, not on`);
  if (settings.encoding !== 'UTF8')
    throw new SettingRefused(`the database has the encoding ${settings.encoding}, not UTF8`);
  return settings.synchronous_commit;
}
