import { SqliteDatabase } from '../../db/sqlite/sqlite-database.ts';
import { isPostgres } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import type { Database } from '../database.ts';
import { CommandFailed } from './command-failed.ts';
import { describeDatabaseError, type OpenDataOptions, openDataDirectory } from './data-directory.ts';

/** A database that a command works on. */
export interface OpenedDatabase {
  readonly database: Database;
  /** One sentence about a failure of the database, with what to do; null when the error is another. */
  readonly describe: (error: unknown) => string | null;
}

/**
 * Opens the database that the settings name. The caller closes it. Throws `CommandFailed` with one sentence that says
 * what to do.
 */
export async function openDatabase(
  options: Values<'data' | 'database' | 'databasePassword'> & Partial<Values<'databaseConnections'>>,
  open: OpenDataOptions,
): Promise<OpenedDatabase> {
  if (isPostgres(options.database)) {
    // Only here: its client and its schema would slow down every command on SQLite.
    const { describeFailure, openPostgres } = await import('./open-postgres.ts');
    const database = await openPostgres(options, open.create);
    return { database, describe: (error) => describeFailure(database.name, error) };
  }
  const database = new SqliteDatabase(openDataDirectory(options.data, open));
  return { database, describe: (error) => describeDatabaseError(database.name, error) };
}

/** Refuses a command that is for the file of SQLite only. Throws `CommandFailed` with `instead`. */
export function requireSqlite({ database }: Values<'database'>, command: string, instead: string): void {
  if (isPostgres(database)) throw new CommandFailed(`${command} is for SQLite: ${instead}.`);
}
