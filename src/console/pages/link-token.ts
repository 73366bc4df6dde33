import { useEffect, useState } from 'preact/hooks';
import { focusContent } from './focus-content.ts';
import { dropFragment, fragment } from './router.ts';

/**
 * The token of the mailed link that led to this page, and what forgets it; null where none did. It is taken out of the
 * address, so that neither the browser's history nor a copied address has it, and ends with the page. An invitation
 * alone outlives it, in `invitation-link.ts`.
 */
export function useLinkToken(): readonly [token: string | null, forget: () => void] {
  const named = fragment.value.get('token');
  const [kept, setKept] = useState<string | null>(null);
  useEffect(() => {
    if (named === null) return;
    setKept(named);
    dropFragment();
  }, [named]);
  const forget = () => {
    setKept(null);
    // What was pressed for it goes with the token.
    focusContent();
  };
  return [named ?? kept, forget];
}
