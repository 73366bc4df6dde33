import { useEffect } from 'preact/hooks';
import { safeReturnPath } from './paths.ts';
import { navigate, query } from './router.ts';
import { session } from './session.ts';

/**
 * Leads whoever is signed in to the page that the address asks for, or else to the first; returns true meanwhile. Another
 * tab may have signed in.
 */
export function useLeadOn(): boolean {
  const is_signed_in = session.value.state === 'signed_in';
  const wanted = query.value.get('return');
  useEffect(() => {
    if (is_signed_in) navigate(safeReturnPath(wanted, location.origin) + location.hash, { replace: true });
  }, [is_signed_in, wanted]);
  return is_signed_in;
}
