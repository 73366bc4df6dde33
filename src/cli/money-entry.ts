import type { Command } from 'commander';
import { randomIdentifiers } from '../contract/identifiers.ts';
import { type DataContext, type JsonOptions, withData } from './command.ts';
import { CommandFailed, DatabaseFailed } from './command-failed.ts';
import { writeNow } from './output.ts';
import { entryId } from './values.ts';

/** The options of a command that enters money by hand. */
export interface EntryOptions extends JsonOptions {
  readonly entry?: string;
}

/** Adds the option that makes the repeat of a failed command safe. */
export function addEntry(command: Command): Command {
  return command.option(
    '--entry <id>',
    'the id that a failed try printed, so that both together enter it once',
    entryId,
  );
}

/**
 * Runs `enter` on the configured database with the id of its entry, and prints the text about its result. The database
 * and standard output may fail after the commit. So the sentence about a failure says how to repeat the command without
 * a second entry.
 */
export async function withEntry<T>(
  options: EntryOptions,
  enter: (context: DataContext, entry_id: string) => Promise<T>,
  textOf: (result: T) => string,
): Promise<void> {
  const entry_id = options.entry ?? randomIdentifiers.id('entry');
  const repeat = `repeat it with --entry ${entry_id}, so that it is entered once.`;
  const entered = await withData(options, (context) => enter(context, entry_id)).catch((error: unknown) => {
    if (!(error instanceof DatabaseFailed)) throw error;
    throw new CommandFailed(`${error.message} It may have been entered all the same: ${repeat}`, {
      cause: error,
    });
  });
  writeNow(textOf(entered), `It was entered all the same: ${repeat}`);
}
