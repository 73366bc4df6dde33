import type { Database } from 'bun:sqlite';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { projectFile } from '../../src/project-root.ts';
import {
  APPLIED_TABLE,
  type AppliedMigration,
  type Migrations,
  SchemaRefused,
  type SchemaState,
  stateOfMigrated,
  stateOfUnmigrated,
} from '../schema-state.ts';

/** The migrations that this program knows, oldest first. */
export function knownMigrations(): Migrations {
  return readMigrationFiles({ migrationsFolder: projectFile('db/sqlite/migrations') });
}

/**
 * How the database's schema compares with this program's. Throws `SchemaRefused` when it has migrations that this
 * program does not know, or tables that none of them made.
 */
export function schemaState(client: Database, known: Migrations = knownMigrations()): SchemaState {
  const applied = appliedMigrations(client);
  return applied.length > 0 ? stateOfMigrated(applied, known) : stateOfUnmigrated(tableNames(client));
}

/** The version of the database's schema: how many migrations it has. */
export function schemaVersion(client: Database): number {
  return appliedMigrations(client).length;
}

/**
 * Applies the migrations that the database lacks, all of them in one transaction: a process that is killed leaves it as
 * it was. The references between tables are checked at its end, so that a migration can build a table anew. Throws
 * `SchemaRefused` and what SQLite throws.
 */
export function bringUpToDate(client: Database, known: Migrations = knownMigrations()): void {
  const migrate = client.transaction(() => {
    // Only now nobody else can write: another process may have been here first.
    if (schemaState(client, known) === 'current') return;
    client.run(
      `CREATE TABLE IF NOT EXISTS ${APPLIED_TABLE} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`,
    );
    for (const { sql, hash, folderMillis } of known.slice(schemaVersion(client))) {
      for (const statement of sql) client.run(statement);
      client.run(`INSERT INTO ${APPLIED_TABLE} (hash, created_at) VALUES (?, ?)`, [hash, folderMillis]);
    }
    const [broken] = client.query<{ table: string }, []>('PRAGMA foreign_key_check').all();
    if (broken !== undefined) throw new SchemaRefused(`has a row of ${broken.table} that refers to nothing`);
  });
  // Dropping a table would take the rows that refer to it along. SQLite ignores the pragma inside of a transaction.
  client.run('PRAGMA foreign_keys = OFF');
  try {
    migrate.immediate();
  } finally {
    client.run('PRAGMA foreign_keys = ON');
  }
}

/** When this program's newest migration was made: the program is not older than that. */
export function newestMigration_ms(known: Migrations = knownMigrations()): number {
  return Math.max(0, ...known.map(({ folderMillis }) => folderMillis));
}

/** What was applied, oldest first. */
function appliedMigrations(client: Database): readonly AppliedMigration[] {
  if (!tableNames(client).includes(APPLIED_TABLE)) return [];
  return client
    .query<AppliedMigration, []>(`SELECT hash, created_at FROM ${APPLIED_TABLE} ORDER BY created_at`)
    .all();
}

function tableNames(client: Database): readonly string[] {
  return client
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    .all()
    .map(({ name }) => name);
}
