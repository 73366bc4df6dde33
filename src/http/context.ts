import type { Caller } from '../accounts/key-directory.ts';
import type { RequestSpan } from '../ops/tracing.ts';
import type { Mode } from '../questions/question.ts';

/** What the service knows of one path. */
export interface KnownPath {
  readonly path: string;
  /** Headers of every response of the path. */
  readonly headers: Readonly<Record<string, string>>;
  /** A second header with the request's id, on every response of the path; null where there is none. */
  readonly request_id_copy: string | null;
  /** The value of `Allow`: the methods that the path takes; null where this service does without the path. */
  readonly allow: string | null;
  /** Present where its answers are in neither log nor metrics; what is refused there is in both. */
  readonly is_unlisted?: true;
}

/** What one request is known by from its first byte to its log line. */
export interface RequestContext {
  readonly request_id: string;
  readonly started_ms: number;
  /** Null when the service does not know the request's path. */
  readonly path: KnownPath | null;
  /** Tells clients without a valid key apart; empty when nothing is known. */
  readonly client_address: string;
  /** To be called as soon as it is clear that the client is known: that it has the key of an organization that may ask. */
  readonly onKnown: () => void;
  /** Null where the request is not traced. */
  readonly span: RequestSpan | null;
  caller: Caller | null;
  /** Of the refusal, from the API's catalogue of errors or the console's: one of few. Null for success. */
  code: string | null;
  /** What metrics call the request, where the path stands for many. */
  endpoint?: string;
  /** The catalog's id of the model, and the mode, of a decision once they are known. */
  model?: string;
  mode?: Mode;
  /** Of a decision that was answered. */
  input_tokens?: number;
  /** Only where the answer is that of an earlier request. */
  is_replayed?: true;
  /** Whether its budget of refusals was spent: such requests are counted in the log, not listed. */
  is_over_budget: boolean;
}

/** The contexts of the requests in flight; a request that is gone takes its context with it. */
export class RequestContexts {
  readonly #contexts = new WeakMap<Request, RequestContext>();

  constructor(
    private readonly begin: (request: Request, client_address: string, onKnown: () => void) => RequestContext,
  ) {}

  /** The context of a request, made at the first call, which is the one that tells of the client. */
  of(request: Request, client_address = '', onKnown: () => void = () => {}): RequestContext {
    const known = this.#contexts.get(request);
    if (known !== undefined) return known;
    const context = this.begin(request, client_address, onKnown);
    this.#contexts.set(request, context);
    return context;
  }

  /** Takes a context that was made elsewhere. */
  keep(request: Request, context: RequestContext): void {
    this.#contexts.set(request, context);
  }
}
