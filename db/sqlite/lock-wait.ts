import { SQLiteError } from 'bun:sqlite';

/** As long as a command waits for the server's writes. */
export const LOCK_DEADLINE_MS = 5_000;
/** A waiting write keeps its request in memory, and that may be a megabyte. */
export const WAITING_MAX = 1_024;
/** A try costs microseconds; this is how late a lock that was given back can be noticed. */
const FIRST_RETRY_MS = 1;
const LONGEST_RETRY_MS = 20;

/** Whether another process has the write lock, so that nothing of the transaction was begun. */
export function isLockedElsewhere(error: unknown): boolean {
  return error instanceof SQLiteError && (error.code ?? '').startsWith('SQLITE_BUSY');
}

/** A write that can wait for a lock. */
export interface WaitingWrite {
  readonly reject: (error: unknown) => void;
  /** When it stops waiting, on the clock of `performance`; set when it first meets another process's lock. */
  expires_ms?: number;
}

/**
 * Waits beside the event loop for a lock: what met it is tried again after a short, growing delay. The connection must
 * have no busy timeout for that.
 */
export class LockWait {
  #retry: ReturnType<typeof setTimeout> | undefined;
  #retry_delay_ms = FIRST_RETRY_MS;
  readonly #deadline_ms: number;

  constructor(deadline_ms: number) {
    this.#deadline_ms = deadline_ms;
  }

  /** Whether a try is due. */
  get isWaiting(): boolean {
    return this.#retry !== undefined;
  }

  /**
   * The writes that may go on waiting after a try that began at `tried_ms`, on the clock of `performance`. The others,
   * whose time is over, are rejected with the lock's error.
   */
  keep<W extends WaitingWrite>(writes: readonly W[], error: unknown, tried_ms: number): W[] {
    const now_ms = performance.now();
    return writes.filter((write) => {
      // From the try's beginning: SQLite itself has waited in it on a connection with a busy timeout.
      write.expires_ms ??= tried_ms + this.#deadline_ms;
      if (write.expires_ms > now_ms) return true;
      write.reject(error);
      return false;
    });
  }

  /** Calls `next` after the delay. */
  retry(next: () => unknown): void {
    this.#retry = setTimeout(next, this.#retry_delay_ms);
    this.#retry_delay_ms = Math.min(2 * this.#retry_delay_ms, LONGEST_RETRY_MS);
  }

  /** Forgets the try that is due, because one begins now. */
  stop(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  /** Begins with the shortest delay again: the lock was given back, or nothing waits for it any more. */
  reset(): void {
    this.#retry_delay_ms = FIRST_RETRY_MS;
  }
}
