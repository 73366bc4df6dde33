import { AddressRefused, databasePlace, SettingRefused } from '../../db/postgres/connection.ts';
import { describePostgresError } from '../../db/postgres/errors.ts';
import { livingNodes } from '../../db/postgres/living-nodes.ts';
import { bringUpToDate, schemaState } from '../../db/postgres/migrate.ts';
import { PostgresDatabase } from '../../db/postgres/postgres-database.ts';
import { SchemaRefused } from '../../db/schema-state.ts';
import { systemClock } from '../clock.ts';
import { withPassword } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import { CommandFailed, NoData } from './command-failed.ts';
import { PROGRAM_VERSION } from './program-version.ts';

/** What is needed to connect. */
export interface PostgresSettings extends Values<'database' | 'databasePassword'> {
  /** Only a server has it. */
  readonly databaseConnections?: number | undefined;
}

/**
 * Connects to the PostgreSQL database of the settings, with a schema that is this program's; an empty database gets it
 * where `create` says so. An older one is updated unless a server runs on it. Throws `CommandFailed` with one sentence
 * that says what to do.
 */
export async function openPostgres(settings: PostgresSettings, create: boolean): Promise<PostgresDatabase> {
  const url = withPassword(settings.database, settings.databasePassword ?? process.env.PGPASSWORD);
  const connections = settings.databaseConnections ?? 1;
  const database = await PostgresDatabase.open({ url, connections, version: PROGRAM_VERSION }).catch(
    (error: unknown) => {
      throw refused(databasePlace(url), error);
    },
  );
  try {
    await ensureSchema(database, create);
    return database;
  } catch (error) {
    await database.close();
    throw refused(database.name, error);
  }
}

async function ensureSchema(database: PostgresDatabase, create: boolean): Promise<void> {
  const { db, name } = database;
  const state = await schemaState(db);
  if (state === 'current') return;
  if (state === 'new' && !create)
    throw new NoData(
      `There is no data in ${name}: run "tds init" with the same --database first, or name another one.`,
    );
  if (state === 'older' && (await livingNodes(db)) > 0) {
    throw new CommandFailed(
      `A server is running on ${name}, which this version has to update: stop all servers, then run this command again.`,
    );
  }
  if (state === 'older') {
    process.stderr.write(
      `tds: the database is updated for this version now, and not backed up before: to go back to the version before, restore your own dump of ${name}.\n`,
    );
  }
  // Of several that begin at once, one does it.
  if ((await bringUpToDate(db)) === 'older')
    process.stderr.write('tds: the database was updated for this version.\n');
  await database.noteVersion(PROGRAM_VERSION, systemClock.now_ms());
}

/** The error as a sentence where it is one of PostgreSQL or of its schema; else as it is. */
function refused(place: string, error: unknown): unknown {
  if (error instanceof CommandFailed) return error;
  if (error instanceof SchemaRefused) {
    const advice = 'use the program that made it, or name another with --database';
    return new CommandFailed(`${place} ${error.message}: ${advice}.`, { cause: error });
  }
  if (error instanceof SettingRefused)
    return new CommandFailed(`${place} cannot be used, because ${error.message}: set it so.`, {
      cause: error,
    });
  if (error instanceof AddressRefused)
    return new CommandFailed(`${place} is ${error.message}: name another with --database.`, { cause: error });
  const text = describePostgresError(place, error);
  return text === null ? error : new CommandFailed(text, { cause: error });
}
