import { type CommonCode, Refusal } from '../errors.ts';

/** What answers the requests. */
export interface RequestHandler {
  /** Answers one request of that client (`clientAddress`); its signal is aborted when the client goes away. */
  handle(request: Request, client_address: string): Response | Promise<Response>;
  /** The response to what never became a request. */
  refuse(refusal: Refusal<CommonCode>): Response;
}

/** The handler's response; its failure is one of ours. */
export async function respond(
  handler: RequestHandler,
  client_address: string,
  makeRequest: () => Request,
): Promise<Response> {
  try {
    return await handler.handle(makeRequest(), client_address);
  } catch {
    return handler.refuse(new Refusal('internal_error'));
  }
}
