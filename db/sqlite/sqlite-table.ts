import {
  type ColumnBaseConfig,
  type ColumnDataType,
  getTableColumns,
  getTableName,
  type SQL,
  sql,
} from 'drizzle-orm';
import { getTableConfig, type PgColumn, PgDialect, type PgTable } from 'drizzle-orm/pg-core';
import {
  check,
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  type SQLiteColumn,
  type SQLiteColumnBuilderBase,
  type SQLiteTable,
  type SQLiteTableWithColumns,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core';

/** The column that numbers the rows of some tables in PostgreSQL. In SQLite it is the rowid. */
export const ROW_NUMBER = 'row_id';

/** The parts of a column's type that both dialects have. */
type SharedParts = keyof ColumnBaseConfig<ColumnDataType, string> | 'generated';

/** The type of a table of `db/tables.ts` in SQLite's dialect. */
type SqliteTableOf<T extends PgTable> = SQLiteTableWithColumns<{
  name: T['_']['name'];
  schema: undefined;
  dialect: 'sqlite';
  columns: {
    [Key in Exclude<keyof T['_']['columns'], typeof ROW_NUMBER>]: SQLiteColumn<
      Pick<T['_']['columns'][Key]['_'], SharedParts>
    >;
  };
}>;

/** A builder of a column of any type. */
interface AnyBuilder extends SQLiteColumnBuilderBase {
  default(value: unknown): unknown;
  notNull(): unknown;
  primaryKey(): unknown;
  unique(name: string | undefined): unknown;
}

const POSTGRES = new PgDialect();

/** The tables that are made so far, for references to them. */
const made = new Map<PgTable, SQLiteTable>();

/**
 * Returns a table of `db/tables.ts` in SQLite's dialect: its columns without the number of a row, and its keys,
 * references, indexes and checks. The compiler takes the type of the columns from the table, because they are made at
 * run time. Throws a `TypeError` for a column of a type that no table has so far. The constraints are made where they
 * are read, for migrations and copies, because every start would pay for them. Then a unique constraint of the table
 * is refused, and a reference of several columns or with `onUpdate`.
 */
export function sqliteTableOf<T extends PgTable>(table: T): SqliteTableOf<T>;
export function sqliteTableOf(table: PgTable): SQLiteTable {
  const result: SQLiteTable = sqliteTable(getTableName(table), buildersOf(table), () =>
    constraintsOf(table, (name) => columnOf(result, name)),
  );
  made.set(table, result);
  return result;
}

function buildersOf(table: PgTable): Record<string, AnyBuilder> {
  const columns = Object.values(getTableColumns(table)).filter(({ name }) => name !== ROW_NUMBER);
  return Object.fromEntries(columns.map((column) => [column.name, builderOf(column)]));
}

/** Returns the primary key of several columns, the references, the indexes and the checks. */
function constraintsOf(table: PgTable, columnNamed: (name: unknown) => SQLiteColumn) {
  const { name, primaryKeys, foreignKeys, indexes, uniqueConstraints, checks } = getTableConfig(table);
  if (uniqueConstraints.length > 0)
    throw new TypeError(`a unique constraint of ${name} is not made for SQLite`);
  const columnsNamed = ([first, ...others]: unknown[]): [SQLiteColumn, ...SQLiteColumn[]] => [
    columnNamed(first),
    ...others.map(columnNamed),
  ];
  return [
    ...primaryKeys.map(({ columns }) => primaryKey({ columns: columnsNamed(columns.map(nameOf)) })),
    ...foreignKeys.map(({ reference, onDelete = 'no action', onUpdate = 'no action' }) => {
      const { columns, foreignTable, foreignColumns } = reference();
      if (columns.length !== 1 || onUpdate !== 'no action')
        throw new TypeError(`a reference of ${name} is not made for SQLite`);
      const from = columnNamed(columns[0]?.name);
      const to = columnOf(made.get(foreignTable), foreignColumns[0]?.name);
      return foreignKey({ columns: [from], foreignColumns: [to] }).onDelete(onDelete);
    }),
    ...indexes
      .map(({ config }) => ({ ...config, names: config.columns.map(nameOf) }))
      .filter(({ names }) => !names.includes(ROW_NUMBER))
      .map(({ name = '', unique, names, where }) => {
        const builder = (unique ? uniqueIndex : index)(name).on(...columnsNamed(names));
        return where === undefined ? builder : builder.where(inSqlite(where));
      }),
    ...checks.map(({ name, value }) => check(name, inSqlite(value))),
  ];
}

/** Returns a column's builder. */
function builderOf(column: PgColumn): AnyBuilder {
  const builder = builderOfType(column);
  if (column.primary) builder.primaryKey();
  if (column.notNull) builder.notNull();
  if (column.default !== undefined) builder.default(column.default);
  if (column.isUnique) builder.unique(column.uniqueName);
  return builder;
}

function builderOfType(column: PgColumn): AnyBuilder {
  const type = column.getSQLType();
  switch (type) {
    case 'text COLLATE "C"':
      return text();
    case 'jsonb':
      return text({ mode: 'json' });
    case 'boolean':
      return integer({ mode: 'boolean' });
    case 'double precision':
      return real();
    case 'bigint':
      return column.generatedIdentity === undefined
        ? integer()
        : integer().primaryKey({ autoIncrement: true });
    default:
      throw new TypeError(`SQLite's tables have no columns such as ${column.name}, which is a ${type}`);
  }
}

function nameOf(column: object): unknown {
  return 'name' in column ? column.name : undefined;
}

function columnOf(table: SQLiteTable | undefined, name: unknown): SQLiteColumn {
  if (table === undefined)
    throw new TypeError('db/sqlite/schema.ts lacks a table that another one refers to');
  const column = getTableColumns(table)[String(name)];
  if (column === undefined) throw new TypeError(`there is no column ${name}`);
  return column;
}

/** Returns a condition in SQLite's words: it has a function for the one cast of a check. */
function inSqlite(condition: SQL): SQL {
  const { sql: written } = POSTGRES.sqlToQuery(condition);
  return sql.raw(written.replace(/("\w+"\."\w+")::json IS NOT NULL/, 'json_valid($1)'));
}
