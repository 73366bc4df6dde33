export const MS_PER_S = 1_000;
export const MINUTE_MS = 60 * MS_PER_S;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** The two times of the service; tests give their own. */
export interface Clock {
  /** Returns the wall clock in whole Unix milliseconds, for what is stored and shown. It may step back. */
  now_ms(): number;
  /** Returns milliseconds that only go forward, for durations and windows. */
  monotonic_ms(): number;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now_ms: () => Date.now(),
  monotonic_ms: () => performance.now(),
};
