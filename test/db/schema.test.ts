import { expect, test } from 'bun:test';
import { is, type SQL } from 'drizzle-orm';
import { getTableConfig, SQLiteSyncDialect, SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as schema from '../../db/sqlite/schema.ts';
import { addAccount, TemporaryDatabase } from '../ledger/support.ts';

const TABLES = Object.values(schema)
  .filter((value) => is(value, SQLiteTable))
  .map((table) => getTableConfig(table));

const DIALECT = new SQLiteSyncDialect();
/** A condition as it is written. */
const written = (condition: SQL) => DIALECT.sqlToQuery(condition).sql;

interface TableListRow {
  readonly name: string;
  readonly type: string;
  readonly strict: number;
}
interface ColumnRow {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
}

test('the migrations make exactly the tables of the schema, and all of them STRICT', () => {
  using file = new TemporaryDatabase();
  const stored = file.db.$client
    .query<TableListRow, []>("SELECT name, type, strict FROM pragma_table_list WHERE schema = 'main'")
    .all()
    .filter(({ name }) => !name.startsWith('sqlite_') && name !== '__drizzle_migrations');
  expect(stored.map(({ name }) => name).sort()).toEqual(TABLES.map(({ name }) => name).sort());
  expect(stored.filter(({ strict }) => strict !== 1)).toEqual([]);
});

test.each(TABLES.map((table) => [table.name, table] as const))(
  '%s has the columns of the schema',
  (name, table) => {
    using file = new TemporaryDatabase();
    const stored = file.db.$client
      .query<ColumnRow, [string]>('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)')
      .all(name);
    const [composite] = table.primaryKeys;
    const primary = composite?.columns.map((column) => column.name) ?? [];
    expect(stored).toEqual(
      table.columns.map((column) => ({
        name: column.name,
        type: column.getSQLType().toUpperCase(),
        notnull: column.notNull ? 1 : 0,
        dflt_value:
          typeof column.default === 'string'
            ? `'${column.default}'`
            : column.default === undefined
              ? null
              : String(column.default),
        pk: column.primary ? 1 : primary.indexOf(column.name) + 1,
      })),
    );
  },
);

test.each(TABLES.map((table) => [table.name, table] as const))(
  '%s has the references, indexes and checks of the schema',
  (name, table) => {
    using file = new TemporaryDatabase();
    const client = file.db.$client;
    const references = client
      .query<{ from: string; table: string; to: string; on_delete: string }, [string]>(
        'SELECT "from", "table", "to", lower(on_delete) AS on_delete FROM pragma_foreign_key_list(?)',
      )
      .all(name)
      .map(({ from, table: target, to, on_delete }) => `${from} → ${target}.${to} (${on_delete})`);
    expect(references.sort()).toEqual(
      table.foreignKeys
        .map((key) => {
          const { columns, foreignTable, foreignColumns } = key.reference();
          return `${columns[0]?.name} → ${getTableConfig(foreignTable).name}.${foreignColumns[0]?.name} (${key.onDelete})`;
        })
        .sort(),
    );

    const indexes = client
      .query<{ name: string; unique: number; sql: string }, [string]>(
        `SELECT name, "unique", sql FROM pragma_index_list(?) JOIN sqlite_schema USING (name) WHERE origin = 'c'`,
      )
      .all(name)
      .map((index) => {
        const columns = client
          .query<{ name: string }, [string]>('SELECT name FROM pragma_index_info(?) ORDER BY seqno')
          .all(index.name)
          .map((column) => column.name);
        const where = / WHERE (.+)$/s.exec(index.sql)?.[1];
        return { name: index.name, columns, unique: index.unique === 1, where };
      });
    const columnName = (column: unknown) =>
      typeof column === 'object' && column !== null && 'name' in column ? column.name : undefined;
    const declared = [
      ...table.indexes.map(({ config }) => ({
        name: config.name,
        columns: config.columns.map(columnName),
        unique: config.unique,
        where: config.where === undefined ? undefined : written(config.where),
      })),
      ...table.columns
        .filter((column) => column.isUnique)
        .map((column) => ({
          name: column.uniqueName,
          columns: [column.name],
          unique: true,
          where: undefined,
        })),
    ];
    const byName = (one: { name: string | undefined }, other: { name: string | undefined }) =>
      String(one.name).localeCompare(String(other.name));
    expect<unknown>(indexes.sort(byName)).toEqual(declared.sort(byName));

    const { sql } = client
      .query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .get(name) ?? { sql: '' };
    expect(sql.match(/CONSTRAINT "\w+" CHECK/g) ?? []).toHaveLength(table.checks.length);
    for (const { name: check, value } of table.checks)
      expect(sql).toContain(`CONSTRAINT "${check}" CHECK(${written(value)})`);
  },
);

test.each([
  ['a fraction of a micro-dollar', '1.5'],
  ['a text', "'ten'"],
])('a balance cannot be %s', (_, value) => {
  using file = new TemporaryDatabase();
  addAccount(file.db, 'acme');
  const { $client } = file.db;
  expect(() => $client.run(`UPDATE organizations SET credit_micros = ${value}`)).toThrow('cannot store');
});
