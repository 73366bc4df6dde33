import type { Caller } from '../accounts/key-directory.ts';
import type { OverloadReason } from '../errors/errors.ts';
import type { RequestSpan } from '../observability/tracing.ts';
import type { Mode } from '../questions/question.ts';
import type { OnKnown } from './request-handler.ts';

/** The properties of one path. */
export interface KnownPath {
  readonly path: string;
  /** Headers of every response of the path. */
  readonly headers: Readonly<Record<string, string>>;
  /** A second header with the request's id, on every response of the path; null where there is none. */
  readonly request_id_copy: string | null;
  /** The value of `Allow`: the methods of the path; null where this service does not have the path. */
  readonly allow: string | null;
  /** Present where the log and the metrics leave out its responses, but not its refusals. */
  readonly is_unlisted?: true;
}

/** A refusal as the log has it. */
export interface LoggedRefusal {
  readonly status: number;
  /** From the API's catalogue of errors or the console's. */
  readonly code: string;
  readonly reason: OverloadReason | null;
  readonly retry_after_s: number | null;
  /** Present where the client left: it ended its connection within its body. */
  readonly is_client_gone?: true | undefined;
}

/** The context of one request, from its first byte to its log line. */
export interface RequestContext {
  readonly request_id: string;
  readonly started_ms: number;
  readonly url: URL;
  /** Null for an unknown path. */
  readonly path: KnownPath | null;
  /** Distinguishes clients without a valid key; empty when unknown. */
  readonly client_address: string;
  /** Call it as soon as the client is known: it has the key of an organization that may ask. */
  readonly onKnown: OnKnown;
  /** Null where the request is not traced. */
  readonly span: RequestSpan | null;
  caller: Caller | null;
  /** Null for success. */
  refusal: LoggedRefusal | null;
  /** The label in metrics, where the path stands for many. */
  endpoint?: string;
  /** The catalog's id of the model, and the mode, of a decision once they are known. */
  model?: string;
  mode?: Mode;
  /** Present for an answered decision. */
  input_tokens?: number;
  /** Present for the answer of an earlier request. */
  is_replayed?: true;
  /** True if its budget of refusals was spent: such requests are counted in the log, not listed. */
  is_over_budget: boolean;
}

/** The contexts of the requests in flight; a context is collected with its request. */
export class RequestContexts {
  readonly #contexts = new WeakMap<Request, RequestContext>();

  /** Returns the context of a request. Throws where none is kept. */
  of(request: Request): RequestContext {
    const context = this.#contexts.get(request);
    if (context === undefined) throw new Error('a request has no context');
    return context;
  }

  keep(request: Request, context: RequestContext): void {
    this.#contexts.set(request, context);
  }
}
