import type { RequestHandler } from './request-handler.ts';

/** Half a year, for this host only, which limits the lock-out after a return to plain HTTP. */
const STRICT_TRANSPORT = 'max-age=15552000';

/** Returns the handler with responses that tell browsers to use only TLS for this host (RFC 6797). */
export function withStrictTransport(handler: RequestHandler): RequestHandler {
  const told = (response: Response): Response => {
    response.headers.set('strict-transport-security', STRICT_TRANSPORT);
    return response;
  };
  return {
    handle: async (...given) => told(await handler.handle(...given)),
    refuse: (refusal) => told(handler.refuse(refusal)),
    report: (failure) => handler.report(failure),
  };
}
