import type { CommonCode, ErrorCode, Refusal } from '../errors/errors.ts';

/** A failure between a request and its response. */
export interface HandlerFailure {
  /** The id of the response; null where there is none. */
  readonly request_id: string | null;
  /** The code of the response; null where the client got none, or not all of it. */
  readonly code: ErrorCode | null;
  readonly error: unknown;
}

/**
 * Call it as soon as the client is known: it has the key of an organization that may ask. With `is_stream` it may send
 * its body, and read the response, for as long as it likes.
 */
export type OnKnown = (is_stream?: true) => void;

/** The handler of requests. */
export interface RequestHandler {
  /** Answers one request of that client (`clientAddress`); its signal is aborted when the client goes away. */
  handle(request: Request, client_address: string, onKnown: OnKnown): Response | Promise<Response>;
  /**
   * Returns the response to that client where no route is asked. That is for bytes that are not HTTP, a target that is
   * not allowed, too many requests, and a failed handler.
   */
  refuse(refusal: Refusal<CommonCode>, client_address: string): Response;
  /** Reports the cause of a failure of ours, beside the client's response, if there is one. */
  report(failure: HandlerFailure): void;
}
