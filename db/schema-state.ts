import type { MigrationMeta } from 'drizzle-orm/migrator';

/** Where either database notes the migrations that it has. */
export const APPLIED_TABLE = '__drizzle_migrations';

export type Migrations = readonly MigrationMeta[];

/** A database that this program must not touch, with what is wrong with it; the message goes on after its place. */
export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused';
}

/** `new` has no table at all; `older` lacks some of the migrations that this program knows. */
export type SchemaState = 'new' | 'older' | 'current';

/** A migration as a database notes it. */
export interface AppliedMigration {
  readonly hash: string;
  readonly created_at: number;
}

/**
 * How a database with these migrations, oldest first, compares with this program. Throws `SchemaRefused` when it has
 * migrations that this program does not know.
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

/** The state of a database without migrations: `new`. Throws `SchemaRefused` when it has tables all the same. */
export function stateOfUnmigrated(tables: readonly string[]): 'new' {
  if (tables.some((name) => name !== APPLIED_TABLE))
    throw new SchemaRefused('is no database of this program');
  return 'new';
}
