import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { focusContent } from './focus-content.ts';
import { dropFragment, fragment, path } from './router.ts';

/** The token of the mailed link that led to the page of this path; null where none did. */
const kept = signal<{ readonly path: string; readonly token: string } | null>(null);

// It ends with its page.
effect(() => {
  if (kept.value !== null && kept.value.path !== path.value) kept.value = null;
});

/**
 * The token of the mailed link that led to this page, and what forgets it; null where none did. It is taken out of the
 * address, so that neither the browser's history nor a copied address has it. It stays while an error is shown in the
 * place of the page. An invitation alone outlives its page, in `invitation-link.ts`.
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
    // What was pressed for it goes with the token.
    focusContent();
  };
  return [named ?? kept.value?.token ?? null, forget];
}

/** Loads the document anew, which finds the token of the page where its link had it. */
export function reloadDocument(): void {
  if (kept.value !== null) {
    history.replaceState(null, '', `#${new URLSearchParams({ token: kept.value.token })}`);
  }
  location.reload();
}
