import type { SQLQueryBindings } from 'bun:sqlite';
import { DrizzleQueryError, getTableColumns, type Query, type SQL } from 'drizzle-orm';
import {
  PgDatabase,
  PgDialect,
  type PgInsertConfig,
  type PgQueryResultHKT,
  type PreparedQueryConfig,
  type SelectedFieldsOrdered,
} from 'drizzle-orm/pg-core';
import { PgProxyTransaction, PgRemoteSession, type PreparedQuery } from 'drizzle-orm/pg-proxy';
import type { Executor } from '../records/executor.ts';
import type { Db } from './connection.ts';
import type { Access } from './transactions.ts';

/** drizzle's queries by the names of tables are not used. */
type NoTables = Record<string, never>;

/** The key under which drizzle keeps the columns of a table. */
const COLUMNS = Symbol.for('drizzle:Columns');

/** PostgreSQL's dialect in words that SQLite has, too. */
class SharedDialect extends PgDialect {
  /** Names the given columns only. For the others drizzle would write `default`, which SQLite does not know there. */
  override buildInsertQuery(config: PgInsertConfig): SQL {
    const { table, values } = config;
    if (!Array.isArray(values)) return super.buildInsertQuery(config);
    const given = Object.entries(getTableColumns(table)).filter(([name]) =>
      values.some((row) => row[name] !== undefined),
    );
    const columns = { value: Object.fromEntries(given) };
    return super.buildInsertQuery({ ...config, table: Object.create(table, { [COLUMNS]: columns }) });
  }
}

const DIALECT = new SharedDialect();

/** Runs drizzle's statements through an access to SQLite. Rejects with SQLite's errors and those of the access. */
class SqliteSession extends PgRemoteSession<NoTables, NoTables> {
  constructor(
    private readonly connection: Db['$client'],
    private readonly access: Access,
    private readonly begun = new Error(),
  ) {
    super(
      (statement, params, method) => {
        const run = () => {
          const prepared = connection.query(statement);
          const bound = params.map(bindable);
          return { rows: method === 'execute' ? prepared.all(...bound) : prepared.values(...bound) };
        };
        // drizzle writes its keywords in small letters.
        return statement.startsWith('select') ? access.read(run) : access.write(run);
      },
      DIALECT,
      undefined,
    );
  }

  /** drizzle's own error has the parameters in its message, and hides the type and the place of the error. */
  override prepareQuery<T extends PreparedQueryConfig>(
    query: Query,
    fields: SelectedFieldsOrdered | undefined,
    name: string | undefined,
    isResponseInArrayMode: boolean,
    mapRows?: (rows: unknown[][]) => T['execute'],
  ): PreparedQuery<T> {
    const prepared = super.prepareQuery<T>(query, fields, name, isResponseInArrayMode, mapRows);
    const execute = prepared.execute.bind(prepared);
    prepared.execute = (values) =>
      execute(values).catch((error) => {
        const cause = error instanceof DrizzleQueryError ? error.cause : error;
        if (cause instanceof Error) cause.stack = `${cause}\n${this.begun.stack?.replace(/^.*\n/, '')}`;
        throw cause;
      });
    return prepared;
  }

  override transaction<T>(
    work: (executor: PgProxyTransaction<NoTables, NoTables>) => Promise<T>,
  ): Promise<T> {
    return this.access.transaction((access) =>
      work(new PgProxyTransaction(DIALECT, new SqliteSession(this.connection, access), undefined)),
    );
  }
}

/**
 * Builds statements, each with a session that knows where it was begun. drizzle runs a statement after the stack of its
 * caller has ended.
 */
class SqliteExecutor extends PgDatabase<PgQueryResultHKT> {
  constructor(
    private readonly connection: Db['$client'],
    private readonly access: Access,
  ) {
    super(DIALECT, new SqliteSession(connection, access), undefined);
  }

  get session() {
    return new SqliteSession(this.connection, this.access);
  }

  /** drizzle's constructor sets it. */
  set session(_: SqliteSession) {}
}

/** Returns an executor of the records' statements on a connection to SQLite. */
export function executorThrough(client: Db['$client'], access: Access): Executor {
  return new SqliteExecutor(client, access);
}

/** Returns a parameter as SQLite takes it: JSON as its text. */
function bindable(value: unknown): SQLQueryBindings {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return value === null ? null : JSON.stringify(value);
}
