import { constants } from 'node:os';

type Interruption = 'SIGINT' | 'SIGTERM';

/** What a shell adds the number of the signal to, in the exit code of a program that it ended. */
const EXIT_BY_SIGNAL = 128;

/**
 * What `work` resolves to. It asks between two of its steps whether SIGINT or SIGTERM told it to stop. Where it got
 * that answer, the exit code says by which signal. A second signal ends the process at once.
 */
export async function interruptible<Result>(
  work: (isStopped: () => boolean) => Promise<Result>,
): Promise<Result> {
  let exit_code: number | null = null;
  const interrupt = (name: Interruption) => {
    if (exit_code !== null) process.exit(EXIT_BY_SIGNAL + constants.signals[name]);
    exit_code = EXIT_BY_SIGNAL + constants.signals[name];
  };
  // They stay: a library's listener that finds itself alone (signal-exit's) would end the process at the first one.
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    return await work(() => {
      if (exit_code === null) return false;
      // Not before: work that has ended when the signal comes was not stopped.
      process.exitCode = exit_code;
      return true;
    });
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
