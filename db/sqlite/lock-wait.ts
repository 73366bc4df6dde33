import { SQLiteError } from 'bun:sqlite';

/** The same time as a command waits for the server's writes. */
export const LOCK_DEADLINE_MS = 5_000;
/** A waiting write keeps its request in memory, and that may be a megabyte. */
export const WAITING_MAX = 1_024;
/** The shortest delay between tries. A try costs microseconds, so a freed lock is noticed soon. */
const FIRST_RETRY_MS = 1;
const LONGEST_RETRY_MS = 20;

/** Returns true if another process has the write lock, so that the transaction has not begun. */
export function isLockedElsewhere(error: unknown): boolean {
  return error instanceof SQLiteError && (error.code ?? '').startsWith('SQLITE_BUSY');
}

/** A write that can wait for a lock. */
export interface WaitingWrite {
  readonly reject: (error: unknown) => void;
  /** The deadline, by `performance.now()`. It is set when the write first meets another process's lock. */
  expires_ms?: number;
}

/**
 * Waits for a lock without blocking the event loop: writes are tried again after a short, growing delay. The connection
 * must have no busy timeout.
 */
export class LockWait {
  #retry: ReturnType<typeof setTimeout> | undefined;
  #retry_delay_ms = FIRST_RETRY_MS;

  constructor(private readonly deadline_ms: number) {}

  /** True while a try is scheduled. */
  get isWaiting(): boolean {
    return this.#retry !== undefined;
  }

  /**
   * Returns the writes that keep waiting after a try that began at `tried_ms`, by `performance.now()`. Rejects those
   * past their deadline with the lock's error.
   */
  keep<W extends WaitingWrite>(writes: readonly W[], error: unknown, tried_ms: number): W[] {
    const now_ms = performance.now();
    return writes.filter((write) => {
      // The deadline counts from the try's beginning, because SQLite may have waited in it (busy timeout).
      write.expires_ms ??= tried_ms + this.deadline_ms;
      if (write.expires_ms > now_ms) return true;
      write.reject(error);
      return false;
    });
  }

  /** Schedules `next` after the delay. */
  retry(next: () => unknown): void {
    this.#retry = setTimeout(next, this.#retry_delay_ms);
    this.#retry_delay_ms = Math.min(2 * this.#retry_delay_ms, LONGEST_RETRY_MS);
  }

  /** Cancels the scheduled try, because one begins now. */
  stop(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  /** Resets the delay, because the lock is free or nothing waits for it any more. */
  reset(): void {
    this.#retry_delay_ms = FIRST_RETRY_MS;
  }
}
