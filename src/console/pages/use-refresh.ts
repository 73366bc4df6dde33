import { useEffect, useRef } from 'preact/hooks';

const INTERVAL_MS = 10_000;

/**
 * Reloads while the page waits for an event elsewhere. It does so every ten seconds while the page is
 * visible, and when the reader returns to it.
 */
export function useRefresh(reload: () => Promise<void>, is_waiting: boolean): void {
  const latest_reload = useRef(reload);
  latest_reload.current = reload;
  useEffect(() => {
    if (!is_waiting) return;
    let is_running = false;
    const refresh = async () => {
      // A return causes two events: of the window, and of the document.
      if (is_running || document.visibilityState === 'hidden') return;
      is_running = true;
      await latest_reload.current();
      is_running = false;
    };
    const start = () => void refresh();
    const timer = setInterval(start, INTERVAL_MS);
    addEventListener('focus', start);
    document.addEventListener('visibilitychange', start);
    return () => {
      clearInterval(timer);
      removeEventListener('focus', start);
      document.removeEventListener('visibilitychange', start);
    };
  }, [is_waiting]);
}
