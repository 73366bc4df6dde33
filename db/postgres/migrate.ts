import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { projectFile } from '../../src/files/project-root.ts';
import {
  APPLIED_TABLE,
  type AppliedMigration,
  type Migrations,
  type SchemaState,
  stateOfMigrated,
  stateOfUnmigrated,
} from '../schema-state.ts';
import type { Executor } from './connection.ts';
import { MIGRATION_LOCK } from './locks.ts';

/** The files name the schema of referenced tables, and no other. */
const DEFAULT_SCHEMA = '"public".';

/** Returns the migrations of this program, oldest first. All tables are in the first schema of the search path. */
export function knownMigrations(): Migrations {
  const files = readMigrationFiles({ migrationsFolder: projectFile('db/postgres/migrations') });
  return files.map((file) => ({ ...file, sql: file.sql.map((one) => one.replaceAll(DEFAULT_SCHEMA, '')) }));
}

/**
 * Returns how the database's schema compares with this program's. Throws `SchemaRefused` when it has migrations that
 * this program does not know, or tables that no migration made.
 */
export async function schemaState(
  executor: Executor,
  known: Migrations = knownMigrations(),
): Promise<SchemaState> {
  const applied = await appliedMigrations(executor);
  return applied.length > 0 ? stateOfMigrated(applied, known) : stateOfUnmigrated(await tableNames(executor));
}

/** Returns the version of the database's schema, which is the number of its migrations. */
export async function schemaVersion(executor: Executor): Promise<number> {
  return (await appliedMigrations(executor)).length;
}

/**
 * Applies the missing migrations in one transaction, so a killed process changes nothing. If several processes begin at
 * once, one migrates and the others wait. Calls `beforeUpdate` in the transaction before it changes an older schema.
 * Resolves with the state before. Rejects with `SchemaRefused`, and as `beforeUpdate` and the client do.
 */
export async function bringUpToDate(
  executor: Executor,
  known: Migrations = knownMigrations(),
  beforeUpdate: (transaction: Executor) => Promise<void> = async () => undefined,
): Promise<SchemaState> {
  return await executor.transaction(async (transaction) => {
    // Another process's migration may take long, and so may the wait for a table in use.
    await transaction.execute(sql`SET LOCAL lock_timeout = 0`);
    await transaction.execute(sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`);
    // The lock is held now. Another process may have migrated before.
    const state = await schemaState(transaction, known);
    if (state === 'current') return state;
    if (state === 'older') await beforeUpdate(transaction);
    const applied_table = sql.identifier(APPLIED_TABLE);
    await transaction.execute(
      sql`CREATE TABLE IF NOT EXISTS ${applied_table} (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, hash text NOT NULL, created_at bigint NOT NULL)`,
    );
    for (const { sql: statements, hash, folderMillis } of known.slice(await schemaVersion(transaction))) {
      for (const statement of statements) await transaction.execute(sql.raw(statement));
      await transaction.execute(
        sql`INSERT INTO ${applied_table} (hash, created_at) VALUES (${hash}, ${folderMillis})`,
      );
    }
    return state;
  });
}

/** Resolves with the ids of the server's processes whose locks keep this database's commands waiting. */
export async function blockingProcesses(executor: Executor): Promise<readonly number[]> {
  const rows = await executor.execute<{ pid: number }>(sql`SELECT DISTINCT blocking AS pid
    FROM pg_stat_activity, unnest(pg_blocking_pids(pid)) AS blocking
    WHERE datname = current_database() AND application_name = current_setting('application_name') ORDER BY 1`);
  return rows.map(({ pid }) => pid);
}

/** Returns the applied migrations, oldest first. */
async function appliedMigrations(executor: Executor): Promise<readonly AppliedMigration[]> {
  if (!(await tableNames(executor)).includes(APPLIED_TABLE)) return [];
  const rows = await executor.execute<{ hash: string; created_at: string }>(
    sql`SELECT hash, created_at FROM ${sql.identifier(APPLIED_TABLE)} ORDER BY id`,
  );
  return rows.map(({ hash, created_at }) => ({ hash, created_at: Number(created_at) }));
}

/** Resolves with the tables of the service's schema, without those of extensions. */
async function tableNames(executor: Executor): Promise<readonly string[]> {
  const rows = await executor.execute<{ name: string }>(sql`SELECT c.relname AS name FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')
      AND NOT EXISTS (
        SELECT 1 FROM pg_depend AS d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
      )`);
  return rows.map(({ name }) => name);
}
