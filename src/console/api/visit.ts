import type { RequestContexts } from '../../http/context.ts';
import type { Visit } from '../people/sign-in.ts';

/**
 * Returns the parts of a request that sign-in needs: its headers, and the client address that it counts by.
 */
export function visitOf(contexts: RequestContexts, request: Request): Visit {
  return { headers: request.headers, client_address: contexts.of(request).client_address };
}
