import type { Caller } from '../accounts/key-directory.ts';
import type { ErrorCode } from '../errors.ts';

/** What one request is known by from its first byte to its log line. */
export interface RequestContext {
  readonly request_id: string;
  readonly started_ms: number;
  caller: Caller | null;
  code: ErrorCode | null;
}

/** The contexts of the requests in flight; a request that is gone takes its context with it. */
export class RequestContexts {
  readonly #contexts = new WeakMap<Request, RequestContext>();

  constructor(private readonly begin: () => RequestContext) {}

  /** The context of a request, made at the first call. */
  of(request: Request): RequestContext {
    const known = this.#contexts.get(request);
    if (known !== undefined) return known;
    const context = this.begin();
    this.#contexts.set(request, context);
    return context;
  }
}
