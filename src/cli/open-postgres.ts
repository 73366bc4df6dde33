import { AddressRefused, databasePlace, SettingRefused } from '../../db/postgres/connection.ts';
import { describePostgresError } from '../../db/postgres/errors.ts';
import { keepNodesOut, livingNodes } from '../../db/postgres/living-nodes.ts';
import { blockingProcesses, bringUpToDate, knownMigrations, schemaState } from '../../db/postgres/migrate.ts';
import { PostgresDatabase } from '../../db/postgres/postgres-database.ts';
import { SchemaRefused } from '../../db/schema-state.ts';
import { withPassword } from '../config/database-address.ts';
import type { Values } from '../config/settings.ts';
import { PROGRAM_VERSION } from '../program/build-info.ts';
import { systemClock } from '../time/clock.ts';
import { CommandFailed, NoData, OlderData } from './command-failed.ts';
import type { OpenDataOptions } from './data-directory.ts';

/** The time between two looks at whether a command's update waits. */
const TELL_OF_WAIT_MS = 3_000;

/** The settings of a connection. */
export interface PostgresSettings extends Values<'database' | 'databasePassword'> {
  /** Only a server has this setting. */
  readonly databaseConnections?: number | undefined;
}

/**
 * Connects to the configured PostgreSQL database, with this program's schema; an empty database gets it if
 * `create` is true. An older schema is updated unless a server runs on it, or `update` is false. Throws
 * `CommandFailed` with one sentence of advice.
 */
export async function openPostgres(
  settings: PostgresSettings,
  open: Pick<OpenDataOptions, 'create' | 'update'>,
): Promise<PostgresDatabase> {
  const url = withPassword(settings.database, settings.databasePassword ?? process.env.PGPASSWORD);
  const connections = settings.databaseConnections ?? 1;
  const database = await PostgresDatabase.open({ url, connections, version: PROGRAM_VERSION }).catch(
    (error: unknown) => {
      throw refused(databasePlace(url), error);
    },
  );
  try {
    await ensureSchema(database, open);
    return database;
  } catch (error) {
    await database.close();
    throw refused(database.name, error);
  }
}

async function ensureSchema(
  database: PostgresDatabase,
  { create, update = true }: Pick<OpenDataOptions, 'create' | 'update'>,
): Promise<void> {
  const { db, name } = database;
  const known = knownMigrations();
  const state = await schemaState(db, known);
  if (state === 'current') return;
  if (state === 'new' && !create)
    throw new NoData(
      `There is no data in ${name}: run "tds init" with the same --database first, or name another one.`,
    );
  if (state === 'older' && !update)
    throw new OlderData(
      `${name} is of an older version: the next start, or another command, updates it, and nothing backs it up before: dump it first.`,
    );
  let is_told = false;
  const waiting = setInterval(async () => {
    if (is_told) return;
    is_told = await tellOfWait(database).catch(() => false);
  }, TELL_OF_WAIT_MS);
  // Of several processes that start at once, one does it.
  const found = await bringUpToDate(db, known, async (transaction) => {
    // A node that registers has to wait, and then finds the newer schema.
    await keepNodesOut(transaction);
    if ((await livingNodes(transaction)) > 0) {
      throw new CommandFailed(
        `A server is running on ${name}, which this version has to update: stop all servers, then run this command again.`,
      );
    }
    process.stderr.write(
      `tds: the database is updated for this version now, and not backed up before: to go back to the version before, restore your own dump of ${name}.\n`,
    );
  }).finally(() => clearInterval(waiting));
  if (found === 'older') process.stderr.write('tds: the database was updated for this version.\n');
  await database.noteVersion(PROGRAM_VERSION, systemClock.now_ms());
}

/**
 * Names the processes for which an update waits, on another connection than the update's. Resolves with false if there
 * are none.
 */
async function tellOfWait({ db, name }: PostgresDatabase): Promise<boolean> {
  const processes = await blockingProcesses(db);
  if (processes.length === 0) return false;
  process.stderr.write(
    `tds: the update of ${name} waits for PostgreSQL's process ${processes.join(', ')}: another command that updates it, or a transaction, such as of a dump or an open psql.\n`,
  );
  return true;
}

/** Returns the error as a sentence where it is one of PostgreSQL or of its schema, else unchanged. */
function refused(place: string, error: unknown): unknown {
  if (error instanceof CommandFailed) return error;
  const text = describeFailure(place, error);
  return text === null ? error : new CommandFailed(text, { cause: error });
}

/** Returns one sentence about a failure of the database at this place, with advice; null for other errors. */
export function describeFailure(place: string, error: unknown): string | null {
  if (error instanceof SchemaRefused)
    return `${place} ${error.message}: use the program that made it, or name another with --database.`;
  if (error instanceof SettingRefused) return `${place} cannot be used, because ${error.message}: set it so.`;
  if (error instanceof AddressRefused) return `${place} is ${error.message}: name another with --database.`;
  return describePostgresError(place, error);
}
