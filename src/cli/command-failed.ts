/** A command that failed, with one sentence for the person at the terminal; the exit code is 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
}

/** Invalid settings; the exit code is that of wrong usage, because a retry would fail as well. */
export class WrongSettings extends CommandFailed {}

/** The database failed while a command worked on it. */
export class DatabaseFailed extends CommandFailed {}

/** There is no data yet at the given place. */
export class NoData extends CommandFailed {}

/** The database is of an older version, and the command may not update it. */
export class OlderData extends CommandFailed {}

/**
 * Runs `work`, and turns errors of these classes, whose messages are such sentences, into `CommandFailed`. Rejects
 * with other errors as they are.
 */
export async function inOneSentence<Result>(
  classes: readonly (new (...given: never[]) => Error)[],
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const is_expected = error instanceof Error && classes.some((expected) => error instanceof expected);
    throw is_expected ? new CommandFailed(error.message, { cause: error }) : error;
  }
}
