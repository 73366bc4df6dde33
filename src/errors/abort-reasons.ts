/** The statuses of failures that are no fault of the client. */
export const SERVER_FAULT = 500;

/** The service stops, and the request was not answered in the time that a stop allows. */
export class ServiceStopped extends Error {
  override readonly name = 'ServiceStopped';
  constructor() {
    super('The service was stopped before the request was answered.');
  }
}

/**
 * Returns true if the client of a request went away before its answer. One of a request that a stop aborted is still there,
 * and gets the error.
 */
export function isClientGone(signal: AbortSignal): boolean {
  return signal.aborted && !(signal.reason instanceof ServiceStopped);
}

/**
 * Returns true if a request, or a step of it, failed only because its client left: that is the end of its work. A refusal
 * below 500 stands, unless it is that of a body that its client ended.
 */
export function isLeftByClient(
  { status, is_client_gone }: { readonly status: number; readonly is_client_gone?: true | undefined },
  signal: AbortSignal,
): boolean {
  return is_client_gone === true || (status >= SERVER_FAULT && isClientGone(signal));
}
