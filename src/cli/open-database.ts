import { SqliteDatabase } from '../../db/sqlite/sqlite-database.ts';
import { isPostgres } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import type { Database } from '../store/database.ts';
import { CommandFailed } from './command-failed.ts';
import { describeDatabaseError, type OpenDataOptions, openDataDirectory } from './data-directory.ts';

/** An open database of a command. */
export interface OpenedDatabase {
  readonly database: Database;
  /** Returns one sentence about a failure of the database, with advice; null for other errors. */
  readonly describe: (error: unknown) => string | null;
}

/**
 * Opens the configured database. The caller closes it. Throws `CommandFailed` with one sentence of advice.
 */
export async function openDatabase(
  options: Values<'data' | 'database' | 'databasePassword'> & Partial<Values<'databaseConnections'>>,
  open: OpenDataOptions,
): Promise<OpenedDatabase> {
  if (isPostgres(options.database)) {
    // Loaded only here, because its client and its schema would slow down every command on SQLite.
    const { describeFailure, openPostgres } = await import('./open-postgres.ts');
    const database = await openPostgres(options, open);
    return { database, describe: (error) => describeFailure(database.name, error) };
  }
  const database = new SqliteDatabase(openDataDirectory(options.data, open));
  return { database, describe: (error) => describeDatabaseError(database.name, error) };
}

/** Refuses a command that is only for SQLite. Throws `CommandFailed` with `instead`. */
export function requireSqlite({ database }: Values<'database'>, command: string, instead: string): void {
  if (isPostgres(database)) throw new CommandFailed(`${command} is for SQLite: ${instead}.`);
}
