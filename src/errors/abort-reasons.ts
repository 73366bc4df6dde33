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
