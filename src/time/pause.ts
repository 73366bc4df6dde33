/** Waits that long, in milliseconds, or until the signal is aborted. Never rejects. */
export type Pause = (duration_ms: number, signal: AbortSignal) => Promise<void>;

/** Pauses by the machine's timers. */
export const pauseByTimer: Pause = async (duration_ms, signal) => {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, duration_ms);
  await untilAborted(over.promise, signal);
  clearTimeout(timer);
};

/** Resolves with `event`, or when the signal is aborted. Never rejects where `event` does not. */
export async function untilAborted(event: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([event, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Resolves as `promise` does, or rejects with the signal's reason when that comes first. */
export function unlessAborted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
