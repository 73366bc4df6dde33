import { useEffect, useState } from 'preact/hooks';

/**
 * Returns the result of `work` once `key` has not changed for `pause_ms`. Undefined until it is there, where `work`
 * rejected, and for the key null. A changed key aborts the signal of the work before.
 */
export function useAfterPause<Result>(
  key: string | null,
  pause_ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Result | undefined {
  const [done, setDone] = useState<{ readonly key: string; readonly result: Result }>();
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      work(controller.signal).then(
        (result) => setDone({ key, result }),
        () => undefined,
      );
    }, pause_ms);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  return done !== undefined && done.key === key ? done.result : undefined;
}
