import { expect, test } from 'bun:test';
import { is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as schema from '../../db/sqlite/schema.ts';
import { addAccount, TemporaryDatabase } from '../ledger/support.ts';

const TABLES = Object.values(schema)
  .filter((value) => is(value, SQLiteTable))
  .map((table) => getTableConfig(table));

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
      .query<{ from: string; table: string; to: string }, [string]>(
        'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)',
      )
      .all(name)
      .map(({ from, table: target, to }) => `${from} → ${target}.${to}`);
    expect(references.sort()).toEqual(
      table.foreignKeys
        .map((key) => {
          const { columns, foreignTable, foreignColumns } = key.reference();
          return `${columns[0]?.name} → ${getTableConfig(foreignTable).name}.${foreignColumns[0]?.name}`;
        })
        .sort(),
    );

    const indexes = client
      .query<{ name: string; unique: number; partial: number }, [string]>(
        `SELECT name, "unique", partial FROM pragma_index_list(?) WHERE origin = 'c'`,
      )
      .all(name)
      .map((index) => {
        const columns = client
          .query<{ name: string }, [string]>('SELECT name FROM pragma_index_info(?) ORDER BY seqno')
          .all(index.name)
          .map((column) => column.name);
        return { name: index.name, columns, unique: index.unique === 1, partial: index.partial === 1 };
      });
    const columnName = (column: unknown) =>
      typeof column === 'object' && column !== null && 'name' in column ? column.name : undefined;
    const declared = [
      ...table.indexes.map(({ config }) => ({
        name: config.name,
        columns: config.columns.map(columnName),
        unique: config.unique,
        partial: config.where !== undefined,
      })),
      ...table.columns
        .filter((column) => column.isUnique)
        .map((column) => ({ name: column.uniqueName, columns: [column.name], unique: true, partial: false })),
    ];
    const byName = (one: { name: string | undefined }, other: { name: string | undefined }) =>
      String(one.name).localeCompare(String(other.name));
    expect<unknown>(indexes.sort(byName)).toEqual(declared.sort(byName));

    const { sql } = client
      .query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .get(name) ?? { sql: '' };
    expect([...sql.matchAll(/CONSTRAINT "(\w+)" CHECK/g)].map(([, check]) => check).sort()).toEqual(
      table.checks.map((check) => check.name).sort(),
    );
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
