import type { Database } from 'bun:sqlite';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { projectFile } from '../../src/files/project-root.ts';
import {
  APPLIED_TABLE,
  type AppliedMigration,
  type Migrations,
  SchemaRefused,
  type SchemaState,
  stateOfMigrated,
  stateOfUnmigrated,
} from '../schema-state.ts';

/** A statement that changes no row. The check of all references takes seconds for a million rows. */
const INDEX_STATEMENT = /^\s*(?:CREATE|DROP) (?:UNIQUE )?INDEX /;

/** Returns the migrations of this program, oldest first. */
export function knownMigrations(): Migrations {
  return readMigrationFiles({ migrationsFolder: projectFile('db/sqlite/migrations') });
}

/**
 * Returns how the database's schema compares with this program's. Throws `SchemaRefused` when it has migrations that
 * this program does not know, or tables that no migration made.
 */
export function schemaState(client: Database, known: Migrations = knownMigrations()): SchemaState {
  const applied = appliedMigrations(client);
  return applied.length > 0 ? stateOfMigrated(applied, known) : stateOfUnmigrated(tableNames(client));
}

/** Returns the version of the database's schema, which is the number of its migrations. */
export function schemaVersion(client: Database): number {
  return appliedMigrations(client).length;
}

/**
 * Applies the missing migrations in one transaction, so a killed process changes nothing. It checks references between
 * tables at the end, so that a migration can rebuild a table, unless all are of indexes. Throws `SchemaRefused` and
 * SQLite's errors.
 */
export function bringUpToDate(client: Database, known: Migrations = knownMigrations()): void {
  const migrate = client.transaction(() => {
    // The write lock is held now. Another process may have migrated before.
    if (schemaState(client, known) === 'current') return;
    client.run(
      `CREATE TABLE IF NOT EXISTS ${APPLIED_TABLE} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`,
    );
    const missing = known.slice(schemaVersion(client));
    for (const { sql, hash, folderMillis } of missing) {
      for (const statement of sql) client.run(statement);
      client.run(`INSERT INTO ${APPLIED_TABLE} (hash, created_at) VALUES (?, ?)`, [hash, folderMillis]);
    }
    if (missing.every(({ sql }) => sql.every((statement) => INDEX_STATEMENT.test(statement)))) return;
    const [broken] = client.query<{ table: string }, []>('PRAGMA foreign_key_check').all();
    if (broken !== undefined) throw new SchemaRefused(`has a row of ${broken.table} that refers to nothing`);
  });
  // Dropping a table would otherwise delete the rows that refer to it. SQLite ignores the pragma inside a transaction.
  client.run('PRAGMA foreign_keys = OFF');
  try {
    migrate.immediate();
  } finally {
    client.run('PRAGMA foreign_keys = ON');
  }
}

/** Returns the applied migrations, oldest first. */
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
