import { type Clock, systemClock } from '../../src/clock.ts';

/** The machine's clock, moved on by hand: a test that needs a minute to pass does not wait for it. */
export class MovableClock implements Clock {
  #wall_offset_ms = 0;
  #monotonic_offset_ms = 0;

  now_ms(): number {
    return systemClock.now_ms() + this.#wall_offset_ms;
  }

  monotonic_ms(): number {
    return systemClock.monotonic_ms() + this.#monotonic_offset_ms;
  }

  /** Lets time pass. */
  advance(duration_ms: number): void {
    this.#wall_offset_ms += duration_ms;
    this.#monotonic_offset_ms += duration_ms;
  }

  /** Sets the wall clock forward or back, as an administrator might; the time that passes is not touched. */
  stepWallClock(difference_ms: number): void {
    this.#wall_offset_ms += difference_ms;
  }
}
