/** An operation that cannot be done, with one sentence for the person at the terminal; the exit code is 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
}

/** Settings that nothing may start with; the exit code is that of wrong usage, because another start changes nothing. */
export class WrongSettings extends CommandFailed {}

/** There is nothing yet where the data should be. */
export class NoData extends CommandFailed {}
