/** Resolves after that time, or as soon as the signal is aborted. */
export function pause(duration_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, duration_ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
