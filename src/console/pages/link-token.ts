import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { focusContent } from './focus-content.ts';
import { dropFragment, fragment, path } from './router.ts';

/** The token of the mailed link that led to the page of this path; null where none did. */
const kept = signal<{ readonly path: string; readonly token: string } | null>(null);

// The token ends with its page.
effect(() => {
  if (kept.value !== null && kept.value.path !== path.value) kept.value = null;
});

/**
 * Returns the token of the mailed link that led to this page, or null, and a function that removes it. The
 * token is removed from the address, so that neither the browser's history nor a copied address has it. It
 * stays while an error is shown in place of the page. Only an invitation outlives its page, in
 * `invitation-link.ts`.
 */
export function useLinkToken(): readonly [token: string | null, forget: () => void] {
  const named = fragment.value.get('token');
  useEffect(() => {
    if (named === null) return;
    kept.value = { path: path.value, token: named };
    dropFragment();
  }, [named]);
  const forget = () => {
    kept.value = null;
    // The pressed button disappears with the token.
    focusContent();
  };
  return [named ?? kept.value?.token ?? null, forget];
}

/** Reloads the document, with the token of the page in its link again. */
export function reloadDocument(): void {
  if (kept.value !== null) {
    history.replaceState(null, '', `#${new URLSearchParams({ token: kept.value.token })}`);
  }
  location.reload();
}
