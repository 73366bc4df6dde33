import type { RequestHandler } from './request-handler.ts';

/** Half a year, for this host only: whoever goes back to plain HTTP is not shut out for longer. */
const STRICT_TRANSPORT = 'max-age=15552000';

/** The handler, whose responses tell browsers to ask this host over TLS only from now on (RFC 6797). */
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
