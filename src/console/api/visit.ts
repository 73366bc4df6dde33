import type { RequestContexts } from '../../http/context.ts';
import type { Visit } from '../people/sign-in.ts';

/** A request as sign-in takes it: its headers, and what its client is counted by. */
export function visitOf(contexts: RequestContexts, request: Request): Visit {
  return { headers: request.headers, client_address: contexts.of(request).client_address };
}
