import { describe, expect, test } from 'bun:test';
import { is, type SQL, sql } from 'drizzle-orm';
import { PgColumn, PgDialect, PgTable, getTableConfig as postgresConfig } from 'drizzle-orm/pg-core';
import {
  SQLiteBaseInteger,
  SQLiteColumn,
  SQLiteSyncDialect,
  SQLiteTable,
  SQLiteTextJson,
  getTableConfig as sqliteConfig,
} from 'drizzle-orm/sqlite-core';
import fc from 'fast-check';
import * as postgresSchema from '../../db/postgres/schema.ts';
import * as sqliteSchema from '../../db/sqlite/schema.ts';
import { propertySeed } from '../ledger/support.ts';
import { isPostgresMissing, testDatabase } from '../support/postgres.ts';

/** Tables of PostgreSQL only, which several nodes share. */
const TABLES_OF_NODES = ['nodes', 'rate_windows', 'rate_window_entries', 'scheduled_runs', 'service_secrets'];
/** SQLite numbers the rows of every table itself. */
const NUMBER_OF_ROW = 'row_id';
/** Checks that the two languages say in other words. */
const CHECKS_IN_OTHER_WORDS = ['trail_detail'];

const SQLITE = Object.entries(sqliteSchema).flatMap(([key, value]) =>
  is(value, SQLiteTable) ? [[key, sqliteConfig(value)] as const] : [],
);
const POSTGRES = Object.entries(postgresSchema).flatMap(([key, value]) =>
  is(value, PgTable) ? [[key, postgresConfig(value)] as const] : [],
);

/** The name of a column of an index; null for an expression. */
function columnName(column: unknown): string | null {
  return is(column, PgColumn) || is(column, SQLiteColumn)
    ? column.name
    : typeof column === 'object' && column !== null && 'name' in column
      ? String(column.name)
      : null;
}

const byName = (one: { readonly name: string }, other: { readonly name: string }) =>
  one.name < other.name ? -1 : 1;

/** A condition as it is written, in the names of the tables. */
function written(condition: SQL | undefined, dialect: PgDialect | SQLiteSyncDialect): string | null {
  return condition === undefined ? null : dialect.sqlToQuery(condition).sql.replace(/\s+/g, ' ');
}

interface Check {
  readonly name: string;
  readonly value: SQL;
}

function checksOf(checks: readonly Check[], dialect: PgDialect | SQLiteSyncDialect) {
  return checks
    .map(({ name, value }) => ({
      name,
      condition: CHECKS_IN_OTHER_WORDS.includes(name) ? '' : written(value, dialect),
    }))
    .sort(byName);
}

/** A table as both dialects can say it, in the words of PostgreSQL. */
function sqliteTable(config: ReturnType<typeof sqliteConfig>) {
  const dialect = new SQLiteSyncDialect();
  const type = (column: SQLiteColumn) => {
    if (is(column, SQLiteTextJson)) return 'jsonb';
    if (column.dataType === 'boolean') return 'boolean';
    if (is(column, SQLiteBaseInteger)) return 'bigint';
    return { text: 'text COLLATE "C"', real: 'double precision' }[column.getSQLType()];
  };
  return {
    columns: config.columns.map((column) => ({
      name: column.name,
      type: type(column),
      not_null: column.notNull,
      default: column.default,
      is_numbered: is(column, SQLiteBaseInteger) && column.autoIncrement,
      is_primary: column.primary,
      unique: column.isUnique ? column.uniqueName : null,
    })),
    primary_keys: config.primaryKeys.map(({ columns }) => columns.map(({ name }) => name)),
    indexes: config.indexes
      .map(({ config: { name, columns, unique, where } }) => ({
        name,
        columns: columns.map(columnName),
        unique,
        where: written(where, dialect),
      }))
      .sort(byName),
    checks: checksOf(config.checks, dialect),
    references: config.foreignKeys
      .map((key) => {
        const { columns, foreignTable, foreignColumns } = key.reference();
        return `${columns.map(({ name }) => name)} → ${sqliteConfig(foreignTable).name} ${foreignColumns.map(({ name }) => name)}`;
      })
      .sort(),
  };
}

function postgresTable(config: ReturnType<typeof postgresConfig>) {
  const dialect = new PgDialect();
  return {
    columns: config.columns.map((column) => ({
      name: column.name,
      type: column.getSQLType(),
      not_null: column.notNull,
      default: column.default,
      is_numbered: column.generatedIdentity !== undefined,
      is_primary: column.primary,
      unique: column.isUnique ? (column.uniqueName ?? null) : null,
    })),
    primary_keys: config.primaryKeys.map(({ columns }) => columns.map(({ name }) => name)),
    indexes: config.indexes
      .map(({ config: { name, columns, unique, where } }) => ({
        name: String(name),
        columns: columns.map(columnName),
        unique,
        where: written(where, dialect),
      }))
      .sort(byName),
    checks: checksOf(config.checks, dialect),
    references: config.foreignKeys
      .map((key) => {
        const { columns, foreignTable, foreignColumns } = key.reference();
        return `${columns.map(({ name }) => name)} → ${postgresConfig(foreignTable).name} ${foreignColumns.map(({ name }) => name)}`;
      })
      .sort(),
  };
}

type Table = ReturnType<typeof postgresTable>;

/** The table without the number of its rows, and what is made for that. */
function withoutRowNumber({ columns, indexes, ...table }: Table): Table {
  return {
    ...table,
    columns: columns.filter(({ name, is_numbered }) => name !== NUMBER_OF_ROW || !is_numbered),
    indexes: indexes.filter((index) => String(index.columns) !== NUMBER_OF_ROW),
  };
}

describe('the schemas of both databases', () => {
  test('have the same tables under the same names', () => {
    const shared = POSTGRES.filter(([, { name }]) => !TABLES_OF_NODES.includes(name));
    expect(shared.map(([key, { name }]) => `${key}: ${name}`).sort()).toEqual(
      SQLITE.map(([key, { name }]) => `${key}: ${name}`).sort(),
    );
    expect(POSTGRES).toHaveLength(SQLITE.length + TABLES_OF_NODES.length);
  });

  test.each(SQLITE.map(([, config]) => [config.name, config] as const))(
    'have the same columns, keys, indexes, checks and references of %s',
    (name, config) => {
      const [, postgres] = POSTGRES.find(([, other]) => other.name === name) ?? [];
      if (postgres === undefined) throw new Error(`PostgreSQL has no ${name}`);
      expect<unknown>(withoutRowNumber(postgresTable(postgres))).toEqual(sqliteTable(config));
    },
  );
});

test('a column of integers takes nothing else, where PostgreSQL would round', () => {
  const { credit_micros } = postgresSchema.organizations;
  for (const value of [1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
    expect(() => credit_micros.mapToDriverValue(value)).toThrow(TypeError);
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      expect(credit_micros.mapToDriverValue(value)).toBe(value);
      expect(credit_micros.mapFromDriverValue(`${value}`)).toBe(value);
    }),
    { seed: propertySeed('integers') },
  );
});

describe.skipIf(isPostgresMissing())('the migrations of PostgreSQL', () => {
  test('make exactly the tables of the schema, with their columns, constraints and indexes', async () => {
    await using database = await testDatabase();
    const { db } = await database.connect({ connections: 1 });
    const columns = await db.execute<{ table: string; name: string; type: string; not_null: boolean }>(sql`
      SELECT c.relname AS table, a.attname AS name, a.attnotnull AS not_null,
        format_type(a.atttypid, a.atttypmod) ||
          CASE WHEN a.attcollation = '"C"'::regcollation THEN ' COLLATE "C"' ELSE '' END AS type
      FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
        AND c.relname <> '__drizzle_migrations'
      ORDER BY c.relname COLLATE "C", a.attnum`);
    expect<unknown>([...columns]).toEqual(
      POSTGRES.map(([, table]) => table)
        .sort(byName)
        .flatMap((table) => {
          const primary = table.primaryKeys.flatMap((key) => key.columns.map(({ name }) => name));
          return table.columns.map((column) => ({
            table: table.name,
            name: column.name,
            type: column.getSQLType(),
            not_null: column.notNull || column.primary || primary.includes(column.name),
          }));
        }),
    );

    const constraints = await db.execute<{ name: string }>(sql`SELECT conname AS name FROM pg_constraint
      WHERE connamespace = 'public'::regnamespace AND contype <> 'p' AND conrelid <> '__drizzle_migrations'::regclass`);
    expect(constraints.map(({ name }) => name).sort()).toEqual(
      POSTGRES.flatMap(([, table]) => [
        ...table.checks.map(({ name }) => name),
        ...table.foreignKeys.map((key) => key.getName()),
        ...table.columns.flatMap((column) => (column.isUnique ? String(column.uniqueName) : [])),
      ]).sort(),
    );

    const indexes = await db.execute<{ name: string }>(sql`SELECT c.relname AS name
      FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
      WHERE c.relnamespace = 'public'::regnamespace
        AND NOT EXISTS (SELECT 1 FROM pg_constraint AS k WHERE k.conindid = c.oid AND k.contype IN ('p', 'u'))`);
    expect(indexes.map(({ name }) => name).sort()).toEqual(
      POSTGRES.flatMap(([, table]) => table.indexes.map(({ config }) => String(config.name))).sort(),
    );
  });
});
