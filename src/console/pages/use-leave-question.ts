import { useEffect } from 'preact/hooks';

/** Lets the browser ask before the page is left or loaded again, while that would lose something. */
export function useLeaveQuestion(would_lose: boolean): void {
  useEffect(() => {
    if (!would_lose) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [would_lose]);
}
