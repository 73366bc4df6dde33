import { type Clock, systemClock } from '../../src/time/clock.ts';

/** A clock that is moved on by hand: a test that needs a minute to pass does not wait for it. */
export class MovableClock implements Clock {
  #wall_offset_ms = 0;
  #monotonic_offset_ms = 0;
  readonly #base: Clock;

  /** Goes on like the machine's clock between the moves, unless another one is given. */
  constructor(base: Clock = systemClock) {
    this.#base = base;
  }

  /** A clock that moves by hand only, so that a test can name the millisecond at which something changes. */
  static stopped(at_ms: number = Date.UTC(2026, 5, 15, 12)): MovableClock {
    return new MovableClock({ now_ms: () => at_ms, monotonic_ms: () => 1_000_000 });
  }

  now_ms(): number {
    return this.#base.now_ms() + this.#wall_offset_ms;
  }

  monotonic_ms(): number {
    return this.#base.monotonic_ms() + this.#monotonic_offset_ms;
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
