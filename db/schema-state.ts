import type { MigrationMeta } from 'drizzle-orm/migrator';

/** The table of applied migrations in both databases. */
export const APPLIED_TABLE = '__drizzle_migrations';

export type Migrations = readonly MigrationMeta[];

/** This program must not use the database. The caller puts the database's place before the message. */
export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused';
}

/** `new` has no table at all; `older` lacks some of the migrations that this program knows. */
export type SchemaState = 'new' | 'older' | 'current';

/** Returns the time of the newest migration. The program that knows them is not older than that. */
export function newestMigration_ms(known: Migrations): number {
  return Math.max(0, ...known.map(({ folderMillis }) => folderMillis));
}

/** An applied migration. */
export interface AppliedMigration {
  readonly hash: string;
  readonly created_at: number;
}

/**
 * Returns how a database with these migrations, oldest first, compares with this program. Throws `SchemaRefused` when
 * it has migrations that this program does not know.
 */
export function stateOfMigrated(
  applied: readonly AppliedMigration[],
  known: Migrations,
): Exclude<SchemaState, 'new'> {
  applied.slice(0, known.length).forEach(({ hash, created_at }, index) => {
    const migration = known[index];
    if (migration?.hash !== hash || migration.folderMillis !== created_at)
      throw new SchemaRefused(
        'was made by another version of this program, whose schema this one does not know',
      );
  });
  if (applied.length > known.length) throw new SchemaRefused('was made by a newer version of this program');
  return applied.length < known.length ? 'older' : 'current';
}

/** Returns `new` for a database without migrations. Throws `SchemaRefused` if it has tables. */
export function stateOfUnmigrated(tables: readonly string[]): 'new' {
  if (tables.some((name) => name !== APPLIED_TABLE))
    throw new SchemaRefused('is no database of this program');
  return 'new';
}
