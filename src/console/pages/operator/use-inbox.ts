import { api, call } from '../client.ts';
import { usePolled } from '../use-polled.ts';

const POLL_MS = 30_000;

/** All that waits for the operator, loaded again every half minute. */
export function useInbox() {
  return usePolled(() => call(api.operator.inbox.get()), [], POLL_MS);
}
