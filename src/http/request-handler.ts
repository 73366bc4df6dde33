import { type CommonCode, type ErrorCode, Refusal } from '../errors.ts';
import { REQUEST_ID_HEADER } from './responses.ts';

/** What went wrong between a request and its response. */
export interface HandlerFailure {
  /** The id of the response; null where there is none. */
  readonly request_id: string | null;
  /** What the client was told; null where it got nothing, or not all of its response. */
  readonly code: ErrorCode | null;
  readonly error: unknown;
}

/** What answers the requests. */
export interface RequestHandler {
  /**
   * Answers one request of that client (`clientAddress`); its signal is aborted when the client goes away. `onKnown` is
   * called as soon as it is clear that the client is known: that it has the key of an organization that may ask.
   */
  handle(request: Request, client_address: string, onKnown: () => void): Response | Promise<Response>;
  /** The response to what never became a request. */
  refuse(refusal: Refusal<CommonCode>): Response;
  /** Takes the cause of a failure of ours, beside the response that tells the client of it, if any does. */
  report(failure: HandlerFailure): void;
}

/** The handler's response; its failure is one of ours. */
export async function respond(
  handler: RequestHandler,
  client_address: string,
  makeRequest: () => Request,
  onKnown: () => void = () => {},
): Promise<Response> {
  try {
    return await handler.handle(makeRequest(), client_address, onKnown);
  } catch (error) {
    const refusal = new Refusal('internal_error');
    const response = handler.refuse(refusal);
    handler.report({ request_id: response.headers.get(REQUEST_ID_HEADER), code: refusal.code, error });
    return response;
  }
}
