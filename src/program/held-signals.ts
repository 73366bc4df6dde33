/** SIGINT and SIGTERM end a start by themselves, but the first process of a container would never see them. */
const HELD: readonly NodeJS.Signals[] = process.pid === 1 ? ['SIGHUP', 'SIGINT', 'SIGTERM'] : ['SIGHUP'];

/**
 * Holds signals back until the first listener of each is there, which then gets them. A reload that is asked for during a
 * start must not end it.
 */
export function holdSignals(signals = HELD): void {
  for (const signal of signals) {
    let held = 0;
    const hold = () => {
      held += 1;
    };
    const handOver = (name: string | symbol) => {
      if (name !== signal) return;
      process.off('newListener', handOver);
      // Only after the new one is there, so that there is always one.
      queueMicrotask(() => {
        process.off(signal, hold);
        for (; held > 0; held -= 1) process.emit(signal, signal);
      });
    };
    process.on(signal, hold).on('newListener', handOver);
  }
}
