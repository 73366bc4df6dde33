import { describe, expect, test } from 'bun:test';
import { is, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { getTableConfig as sqliteConfig } from 'drizzle-orm/sqlite-core';
import fc from 'fast-check';
import * as postgresSchema from '../../db/postgres/schema.ts';
import * as sqliteSchema from '../../db/sqlite/schema.ts';
import * as tables from '../../db/tables.ts';
import { propertySeed } from '../ledger/support.ts';
import { isPostgresMissing, testDatabase } from '../support/postgres.ts';

const POSTGRES = Object.values(postgresSchema).flatMap((value) =>
  is(value, PgTable) ? [getTableConfig(value)] : [],
);

const byName = (one: { readonly name: string }, other: { readonly name: string }) =>
  one.name < other.name ? -1 : 1;

test('both databases have the same tables, besides those of nodes', () => {
  const shared = Object.values(tables).flatMap((value) =>
    is(value, PgTable) ? [getTableConfig(value).name] : [],
  );
  const made = Object.values(sqliteSchema).map((table) => sqliteConfig(table).name);
  expect(made.sort()).toEqual(shared.sort());
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
      POSTGRES.toSorted(byName).flatMap((table) => {
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
      POSTGRES.flatMap((table) => [
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
      POSTGRES.flatMap((table) => table.indexes.map(({ config }) => String(config.name))).sort(),
    );
  });
});
