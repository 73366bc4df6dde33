/** A command that failed, with one sentence for the person at the terminal; the exit code is 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
}

/** Invalid settings; the exit code is that of wrong usage, because a retry would fail as well. */
export class WrongSettings extends CommandFailed {}

/** There is no data yet at the given place. */
export class NoData extends CommandFailed {}
