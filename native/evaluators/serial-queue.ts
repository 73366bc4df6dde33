import { EngineFailed, EngineOverloaded } from '../errors.ts';

interface Waiting {
  /** Does the work and settles the caller's promise; never rejects. */
  readonly start: () => Promise<void>;
  readonly reject: (reason: unknown) => void;
}

/** Runs work one piece at a time, first come first served. The number of waiting pieces is bounded. */
export class SerialQueue {
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  /** `limit` is the largest number of pieces that wait behind the running one. */
  constructor(private readonly limit: number) {}

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Runs `work` in its turn, and resolves or rejects as it does. Rejects with the signal's reason when aborted while it
   * waits, with `EngineOverloaded` when the queue is full, and with `EngineFailed` when it is closed.
   */
  run<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    if (this.#closed) return Promise.reject(new EngineFailed('The model has been closed.'));
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#waiting.length >= this.limit) {
      return Promise.reject(new EngineOverloaded(`${this.limit} plans wait already.`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const abort = () => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      reject(signal?.reason);
    };
    const waiting: Waiting = {
      start: () => {
        signal?.removeEventListener('abort', abort);
        return work().then(resolve, reject);
      },
      reject: (reason) => {
        signal?.removeEventListener('abort', abort);
        reject(reason);
      },
    };
    signal?.addEventListener('abort', abort, { once: true });
    this.#waiting.push(waiting);
    this.#running ??= this.#drain();
    return promise;
  }

  /** Rejects all waiting work with `EngineFailed`. Resolves when the running piece has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const waiting of this.#waiting.splice(0)) {
      waiting.reject(new EngineFailed('The model has been closed.'));
    }
    await this.#running;
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await next.start();
    }
    this.#running = undefined;
  }
}
