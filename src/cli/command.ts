import type { Command } from 'commander';
import type { AccountContext } from '../access/context.ts';
import { DATA_SETTINGS, type Values } from '../config/settings.ts';
import { randomIdentifiers } from '../contract/identifiers.ts';
import type { Database } from '../store/database.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../time/clock.ts';
import { DatabaseFailed } from './command-failed.ts';
import { addSettings } from './command-settings.ts';
import type { OpenDataOptions } from './data-directory.ts';
import { openDatabase } from './open-database.ts';
import { wholeNumberFromOne } from './values.ts';

/** The options of every command on stored data. */
export type DataOptions = Values<(typeof DATA_SETTINGS)[number]>;

/** The parts of a command on stored data. */
export interface DataContext extends AccountContext {
  /** The database beneath the store, for the operator's work: audits, copies, the server. */
  readonly database: Database;
  readonly store: Store;
}

/** True with `--json`, for scripts. */
export interface JsonOptions extends DataOptions {
  readonly json?: true;
}

/** The options of a command that lists everything, or the first rows of it. */
export interface ListOptions extends JsonOptions {
  readonly limit?: number;
}

interface CommandText {
  /** The name and arguments, in commander's syntax. */
  readonly usage: string;
  readonly description: string;
  /** Working command lines, shown by `--help`. */
  readonly example: string | readonly string[];
}

/**
 * Adds a command with the settings of stored data, or those of them that it uses, and an example in its help.
 */
export function dataCommand(
  parent: Command,
  text: CommandText,
  settings: readonly (typeof DATA_SETTINGS)[number][] = DATA_SETTINGS,
): Command {
  return addSettings(parent.command(text.usage), settings)
    .description(text.description)
    .addHelpText('after', examplesHelp([text.example].flat()));
}

/** Returns the examples in a command's help. */
export function examplesHelp(examples: readonly string[]): string {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  return `\n${heading}:\n${examples.map((example) => `  $ ${example}`).join('\n')}`;
}

/** Adds a command that also has `--json`. */
export function jsonCommand(...given: Parameters<typeof dataCommand>): Command {
  return dataCommand(...given).option('--json', 'print JSON');
}

/** Adds a command that lists everything, unless a `--limit` is given. There is no default, because scripts read these lists. */
export function listCommand(...given: Parameters<typeof dataCommand>): Command {
  return jsonCommand(...given).option(
    '--limit <number>',
    'list only so many, the first ones (default: all)',
    wholeNumberFromOne,
  );
}

/**
 * Runs `work` on the configured database and closes it. A failure of the database becomes one sentence
 * (`DatabaseFailed`).
 */
export async function withData<T>(
  options: DataOptions,
  work: (context: DataContext) => T | Promise<T>,
  open: OpenDataOptions = { create: false },
): Promise<T> {
  const { database, describe } = await openDatabase(options, open);
  const { store } = database;
  try {
    return await work({ database, store, clock: systemClock, identifiers: randomIdentifiers });
  } catch (error) {
    const text = describe(error);
    if (text === null) throw error;
    throw new DatabaseFailed(text, { cause: error });
  } finally {
    await database.close();
  }
}
