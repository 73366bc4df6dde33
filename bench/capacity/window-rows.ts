import { WINDOW_MS } from '../../src/limits/rate-status.ts';
import { SlidingWindow } from '../../src/limits/sliding-window.ts';

/** The windows of requests, as their rows in the database have them. Tokens are not simulated. */
export class WindowRows {
  readonly #windows = new Map<number, SlidingWindow>();

  /** With a limit of null all requests are let in. */
  constructor(private readonly requests_per_minute: number | null) {}

  /** 0 for a request that was let in and counted; else how long there is none left. */
  admit(organization: number, now_ms: number): number {
    if (this.requests_per_minute === null) return 0;
    const window = this.#of(organization);
    if (window.total(now_ms) >= this.requests_per_minute) return window.untilOldestLeaves_ms(now_ms);
    window.add(now_ms, 1);
    return 0;
  }

  #of(organization: number): SlidingWindow {
    const existing = this.#windows.get(organization);
    if (existing !== undefined) return existing;
    const created = new SlidingWindow(WINDOW_MS);
    this.#windows.set(organization, created);
    return created;
  }
}
