import type { Mode } from '../questions/question.ts';

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
