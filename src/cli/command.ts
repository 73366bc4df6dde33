import type { Command } from 'commander';
import type { Db } from '../../db/sqlite/connection.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import type { AccountContext } from '../accounts/context.ts';
import { systemClock } from '../clock.ts';
import type { Values } from '../config/settings.ts';
import { randomIdentifiers } from '../identifiers.ts';
import { CommandFailed } from './command-failed.ts';
import { describeDatabaseError, type OpenDataOptions, openDataDirectory } from './data-directory.ts';
import { addSettings } from './settings.ts';

/** The options that every command on stored data has. */
export type DataOptions = Values<'data'>;

/** What a command on stored data works with. */
export interface DataContext extends AccountContext {
  /** The database beneath the store, for what only an operator does: audits, copies, the server. */
  readonly db: Db;
  readonly store: SqliteStore;
}

/** With `--json`, for scripts. */
export interface JsonOptions extends DataOptions {
  readonly json?: true;
}

interface CommandText {
  /** Name and arguments, as commander reads them. */
  readonly usage: string;
  readonly description: string;
  /** A command line that works, shown by `--help`. */
  readonly example: string;
}

/** Adds a command with `--data` and an example in its help. */
export function dataCommand(parent: Command, text: CommandText): Command {
  return addSettings(parent.command(text.usage), ['data'])
    .description(text.description)
    .addHelpText('after', `\nExample:\n  $ ${text.example}`);
}

/** Adds a command that also has `--json`. */
export function jsonCommand(parent: Command, text: CommandText): Command {
  return dataCommand(parent, text).option('--json', 'print JSON');
}

/**
 * Runs `work` on the database of the data directory and closes it. A failure of SQLite becomes one sentence
 * (`CommandFailed`).
 */
export async function withData<T>(
  options: DataOptions,
  work: (context: DataContext) => T | Promise<T>,
  open: OpenDataOptions = { create: false },
): Promise<T> {
  const db = openDataDirectory(options.data, open);
  try {
    return await work({ db, store: new SqliteStore(db), clock: systemClock, identifiers: randomIdentifiers });
  } catch (error) {
    const text = describeDatabaseError(db.$client.filename, error);
    if (text === null) throw error;
    throw new CommandFailed(text, { cause: error });
  } finally {
    db.$client.close();
  }
}
