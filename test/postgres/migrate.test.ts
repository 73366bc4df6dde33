import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { runAudit } from '../../db/postgres/audit.ts';
import type { Executor } from '../../db/postgres/connection.ts';
import { bringUpToDate, knownMigrations, schemaState, schemaVersion } from '../../db/postgres/migrate.ts';
import { projectMonths } from '../../db/postgres/schema.ts';
import { type Migrations, newestMigration_ms, SchemaRefused } from '../../db/schema-state.ts';
import { COUNT_BY_KEY, COUNTED_BY_KEY, MONTHS_BY_KEY, OLD_ROWS } from '../db/old-rows.ts';
import { propertySeed } from '../ledger/support.ts';
import { isPostgresMissing, testDatabase } from '../support/postgres.ts';
import { rejection } from '../support/rejection.ts';

const PROCESSES = 3;

/** Migrations of a program; `branch` tells those apart that another program has at the same place. */
function migrations(count: number, branch = 'main'): Migrations {
  return Array.from({ length: count }, (_, index) => ({
    sql: [
      `CREATE TABLE step_${index} (id bigint PRIMARY KEY)`,
      `INSERT INTO step_${index} (id) VALUES (${index})`,
    ],
    folderMillis: 1_000 + index,
    hash: `${branch}_${index}`,
    bps: true,
  }));
}

/** The tables of `migrations` that everybody sees. */
async function steps(executor: Executor): Promise<readonly string[]> {
  const rows = await executor.execute<{ name: string }>(
    sql`SELECT tablename AS name FROM pg_tables WHERE tablename LIKE 'step%' ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}

async function migrateInProcess(url: string): Promise<string> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'migrate-child.ts'), url], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const [found, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  expect(code).toBe(0);
  return found.trim();
}

describe.skipIf(isPostgresMissing())('the schema of PostgreSQL', () => {
  test('is made once by processes that begin at once, each of which then has it', async () => {
    await using database = await testDatabase({ empty: true });
    const found = await Promise.all(Array.from({ length: PROCESSES }, () => migrateInProcess(database.url)));
    expect(found.toSorted()).toEqual(['current', 'current', 'new']);
    const { db } = await database.connect({ connections: 1 });
    expect(await schemaState(db)).toBe('current');
    expect(await schemaVersion(db)).toBe(knownMigrations().length);
  });

  test('is waited for by whoever comes while it is made, and not made again', async () => {
    await using database = await testDatabase({ empty: true });
    const [one, other] = [await database.connect(), await database.connect()];
    const found = await Promise.all([bringUpToDate(one.db), bringUpToDate(other.db)]);
    expect(found.toSorted()).toEqual(['current', 'new']);
  });

  test('whatever a database has and a program knows: it is taken, brought up to date or refused, and never changed by a refusal', async () => {
    await using database = await testDatabase({ empty: true });
    const { db } = await database.connect({ connections: 2 });
    const count = fc.nat({ max: 4 });
    await fc.assert(
      fc.asyncProperty(count, fc.integer({ min: 1, max: 4 }), count, async (applied, known, common) => {
        await db.execute(sql`DROP SCHEMA public CASCADE`);
        await db.execute(sql`CREATE SCHEMA public`);
        const made_by = [
          ...migrations(Math.min(common, applied)),
          ...migrations(applied, 'other').slice(common),
        ];
        if (applied > 0) await bringUpToDate(db, made_by);
        const program = migrations(known);
        const is_known = applied <= known && applied <= common;
        if (is_known) {
          const state = applied === 0 ? 'new' : applied < known ? 'older' : 'current';
          expect(await schemaState(db, program)).toBe(state);
          expect(await bringUpToDate(db, program)).toBe(state);
          expect(await schemaState(db, program)).toBe('current');
        } else {
          expect(await rejection(schemaState(db, program))).toBeInstanceOf(SchemaRefused);
          expect(await rejection(bringUpToDate(db, program))).toBeInstanceOf(SchemaRefused);
        }
        const version = is_known ? known : applied;
        expect(await schemaVersion(db)).toBe(version);
        expect(await steps(db)).toEqual(Array.from({ length: version }, (_, index) => `step_${index}`));
      }),
      { numRuns: 30, seed: propertySeed('migrations of PostgreSQL') },
    );
  });

  test('is refused in one sentence where a newer version, another version or another program made it', async () => {
    await using database = await testDatabase({ empty: true });
    const { db } = await database.connect({ connections: 2 });
    await bringUpToDate(db, migrations(2));
    const refusals = [
      await rejection(schemaState(db, migrations(1))),
      await rejection(schemaState(db, migrations(2, 'other'))),
    ];
    await db.execute(sql`DROP TABLE __drizzle_migrations`);
    expect([...refusals, await rejection(schemaState(db))]).toEqual([
      new SchemaRefused('was made by a newer version of this program'),
      new SchemaRefused('was made by another version of this program, whose schema this one does not know'),
      new SchemaRefused('is no database of this program'),
    ]);
    expect(await steps(db)).toEqual(['step_0', 'step_1']);
  });

  test('is made beside the tables of another schema, and of an extension', async () => {
    await using database = await testDatabase({ empty: true });
    const { db } = await database.connect({ connections: 1 });
    await db.execute(sql`CREATE SCHEMA other`);
    await db.execute(sql`CREATE TABLE other.step (id bigint)`);
    await db.execute(sql`CREATE TABLE owned (id bigint)`);
    await db.execute(sql`ALTER EXTENSION plpgsql ADD TABLE owned`);
    expect(await bringUpToDate(db, migrations(1))).toBe('new');
    expect(await schemaState(db, migrations(1))).toBe('current');
  });

  test('is made and brought up to date in the first schema of the search path, however short statements may take', async () => {
    await using database = await testDatabase({ empty: true });
    const { db: first } = await database.connect({ connections: 1 });
    await first.execute(sql`CREATE SCHEMA own`);
    await first.execute(sql.raw(`ALTER DATABASE ${database.name} SET search_path = own`));
    await first.execute(sql.raw(`ALTER DATABASE ${database.name} SET statement_timeout = '1ms'`));
    await database.disconnect();
    const { db } = await database.connect({ connections: 1 });
    await bringUpToDate(db, knownMigrations().slice(0, 1));
    for (const row of OLD_ROWS) await db.execute(sql.raw(row));
    expect(await bringUpToDate(db)).toBe('older');
    expect(await schemaState(db)).toBe('current');
    expect(await runAudit(db)).toMatchObject({ ok: true, open_holds: 1 });
    const schemas = sql`SELECT DISTINCT schemaname AS name FROM pg_tables WHERE tablename IN ('users', 'alerts')`;
    expect([...(await db.execute(schemas))]).toEqual([{ name: 'own' }]);
  });

  test.each(knownMigrations().map((_, index) => index + 1))(
    'with the first %d migrations is brought up to date with its books, months and open holds',
    async (count) => {
      await using database = await testDatabase({ empty: true });
      const { db } = await database.connect({ connections: 2 });
      await bringUpToDate(db, knownMigrations().slice(0, count));
      for (const row of OLD_ROWS) await db.execute(sql.raw(row));
      await bringUpToDate(db);
      const report = await runAudit(db);
      expect(report.checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
      expect(report.open_holds).toBe(1);
      expect(await db.select().from(projectMonths)).toEqual([
        { project_id: 'proj_1', month: '2026-06', spent_micros: 7, held_micros: 20, api_key_id: '' },
      ]);
    },
  );

  test.each(Object.values(COUNTED_BY_KEY))(
    'with the first %d migrations gives projects the sums of what was counted for their keys and for none',
    async (count) => {
      await using database = await testDatabase({ empty: true });
      const { db } = await database.connect({ connections: 2 });
      await bringUpToDate(db, knownMigrations().slice(0, count));
      for (const statement of [...OLD_ROWS, ...COUNT_BY_KEY]) await db.execute(sql.raw(statement));
      await bringUpToDate(db);
      const { project_id, month, api_key_id } = projectMonths;
      const months = db.select().from(projectMonths).orderBy(project_id, month, api_key_id);
      expect(await months).toEqual(MONTHS_BY_KEY);
      expect(await runAudit(db)).toMatchObject({ ok: true, open_holds: 1 });
    },
  );

  test('is as before when a migration fails, or when the connection breaks in the middle', async () => {
    await using database = await testDatabase({ empty: true });
    const { db } = await database.connect({ connections: 2 });
    await bringUpToDate(db, migrations(1));
    const failing = (statement: string) =>
      migrations(3).map((migration, index) =>
        index < 2 ? migration : { ...migration, sql: [...migration.sql, statement] },
      );
    for (const statement of [
      'INSERT INTO missing (id) VALUES (1)',
      'SELECT pg_terminate_backend(pg_backend_pid())',
    ]) {
      await rejection(bringUpToDate(db, failing(statement)));
      expect(await schemaState(db, failing(statement))).toBe('older');
      expect(await schemaVersion(db)).toBe(1);
      expect(await steps(db)).toEqual(['step_0']);
    }
    expect(await bringUpToDate(db, migrations(3))).toBe('older');
    expect(await steps(db)).toEqual(['step_0', 'step_1', 'step_2']);
  });
});

test('the program is not older than its newest migration', () => {
  const newest_ms = newestMigration_ms(knownMigrations());
  expect(knownMigrations().every(({ folderMillis }) => folderMillis <= newest_ms)).toBe(true);
  expect(newest_ms).toBeGreaterThan(Date.parse('2026-01-01'));
  expect(newestMigration_ms([])).toBe(0);
});
