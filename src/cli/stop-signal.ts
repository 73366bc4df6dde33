import { isatty } from 'node:tty';
import { exitCodeOf } from './interruptible.ts';

/** The file descriptor. */
const STANDARD_INPUT = 0;

/** The request to end the service. */
export interface Stop {
  /** Resolves when it comes. */
  readonly asked: Promise<void>;
  readonly is_asked: boolean;
}

/**
 * Returns the stop request of the first SIGINT or SIGTERM, or of the loss of the starting terminal. SIGHUP
 * otherwise requests a reload. A second SIGINT or SIGTERM ends the process at once. The listeners stay,
 * because a library's listener that is alone (signal-exit's, beneath node-llama-cpp) would end the process at
 * the first signal.
 */
export function stopSignal(reload: () => void): Stop {
  const { promise, resolve } = Promise.withResolvers<void>();
  let is_asked = false;
  let has_signal = false;
  const ask = () => {
    is_asked = true;
    resolve();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (has_signal) process.exit(exitCodeOf(signal));
      has_signal = true;
      ask();
    });
  }
  const began_on_terminal = isatty(STANDARD_INPUT);
  process.on('SIGHUP', () => {
    if (began_on_terminal && !isatty(STANDARD_INPUT)) ask();
    else if (!is_asked) reload();
  });
  return {
    asked: promise,
    get is_asked() {
      return is_asked;
    },
  };
}
