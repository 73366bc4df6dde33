import { constants } from 'node:os';

type Interruption = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** The number that shells add to a signal's number for the exit code. */
const EXIT_BY_SIGNAL = 128;

/** Returns the exit code of a process that ends because of that signal. */
export function exitCodeOf(signal: Interruption): number {
  return EXIT_BY_SIGNAL + constants.signals[signal];
}

/**
 * Runs `work`, which asks between two of its steps if SIGINT or SIGTERM told it to stop. If the answer was
 * yes, the exit code shows the signal. The signal of `work` is aborted then, for what takes long. A second
 * signal ends the process at once.
 */
export async function interruptible<Result>(
  work: (isStopped: () => boolean, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  let exit_code: number | null = null;
  const interrupt = (name: Interruption) => {
    if (exit_code !== null) process.exit(exitCodeOf(name));
    exit_code = exitCodeOf(name);
    stop.abort();
  };
  // The listeners stay: a library's listener that is alone (signal-exit's) would end the process at the first
  // signal.
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    return await work(() => {
      if (exit_code === null) return false;
      // Set only here, because work that had already ended was not stopped.
      process.exitCode = exit_code;
      return true;
    }, stop.signal);
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
