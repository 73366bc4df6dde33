import { useEffect } from 'preact/hooks';
import { type Loaded, useLoaded } from './use-loaded.ts';

/**
 * Loads repeatedly while the page is visible, each time that long after the last answer; null pauses it. The
 * last answer stays when a later load fails.
 */
export function usePolled<T>(
  load: () => Promise<T>,
  inputs: readonly unknown[],
  interval_ms: number | null | ((data: T | undefined) => number | null),
): Loaded<T> {
  const loaded = useLoaded(load, inputs);
  const { is_loading, data, reload } = loaded;
  const wait_ms = typeof interval_ms === 'function' ? interval_ms(data) : interval_ms;
  useEffect(() => {
    if (is_loading || wait_ms === null) return;
    let timer = setTimeout(poll, wait_ms);
    function poll() {
      // A page that becomes visible again loads at once.
      if (document.visibilityState === 'visible') void reload();
    }
    const follow = () => {
      clearTimeout(timer);
      if (document.visibilityState === 'visible') timer = setTimeout(poll, 0);
    };
    document.addEventListener('visibilitychange', follow);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', follow);
    };
  }, [is_loading, wait_ms, reload]);
  return loaded;
}
