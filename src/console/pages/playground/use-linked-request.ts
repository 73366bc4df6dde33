import { useEffect, useRef, useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { objectIn } from '../object-in.ts';
import { dropFragment, fragment } from '../router.ts';
import { LINKED_REQUEST, linkedText } from './request-link.ts';

/**
 * Opens the request that the address has in its fragment, and takes it out of the address. A reload then finds what was
 * made of it. Says where it cannot be read.
 */
export function useLinkedRequest(
  open: (body: JsonObject<JsonValue>) => Promise<void>,
): 'unreadable' | undefined {
  const [outcome, setOutcome] = useState<'unreadable'>();
  const latest_open = useRef(open);
  latest_open.current = open;
  const packed = fragment.value.get(LINKED_REQUEST);
  useEffect(() => {
    if (packed === null) return;
    void linkedText(packed).then(async (text) => {
      const body = text === null ? null : objectIn(text);
      setOutcome(body === null ? 'unreadable' : undefined);
      dropFragment();
      if (body !== null) await latest_open.current(body);
    });
  }, [packed]);
  return outcome;
}
