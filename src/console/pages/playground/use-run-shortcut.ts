import { useEffect, useRef } from 'preact/hooks';

/** Runs on Ctrl+Enter, and on Command+Enter, unless a dialog is open. Null while nothing can run. */
export function useRunShortcut(run: (() => void) | null): void {
  const latest_run = useRef(run);
  latest_run.current = run;
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      const is_shortcut = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
      if (!is_shortcut || event.repeat || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      latest_run.current?.();
    };
    document.addEventListener('keydown', follow);
    return () => document.removeEventListener('keydown', follow);
  }, []);
}
