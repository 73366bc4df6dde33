import type { Mode } from '../questions/question.ts';

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

/** The number of requests of one kind that a stop aborted; metadata only. */
export interface CutCount {
  readonly endpoint: string;
  readonly mode: Mode;
  readonly requests: number;
}

/** Counts the requests that a stop aborts, by endpoint and mode. */
export class CutRequests {
  readonly #counts = new Map<string, CutCount>();

  add(endpoint: string, mode: Mode): void {
    const kind = `${endpoint} ${mode}`;
    const requests = (this.#counts.get(kind)?.requests ?? 0) + 1;
    this.#counts.set(kind, { endpoint, mode, requests });
  }

  counts(): readonly CutCount[] {
    return [...this.#counts.values()];
  }
}
