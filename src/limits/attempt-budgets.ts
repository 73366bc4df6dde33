import { type HashKey, halfSipHash } from '../hashing/half-siphash.ts';

/** A budget of attempts: so many at once, and one more after each `refill_ms`. */
export interface AttemptBudget {
  readonly at_once: number;
  readonly refill_ms: number;
}

/** The slots for names: a power of two, in 128 kilobytes for each kind. */
const SLOTS = 16_384;

/**
 * Buckets of attempts, by kind and by name. Pure: the caller gives the time, from a clock that never goes
 * back, and a random key of the hash.
 *
 * Names share a fixed number of slots by a keyed hash. Nothing is ever evicted, so no number of names resets
 * a budget. The key keeps an attacker from choosing a name that shares another's slot.
 */
export class AttemptBudgets<Kind extends string> {
  /** The time at which each bucket is full again, by kind and slot. */
  readonly #full_at_ms = new Map<Kind, Float64Array>();

  constructor(
    private readonly budgets: Readonly<Record<Kind, AttemptBudget>>,
    private readonly key: HashKey,
  ) {}

  /**
   * Takes one attempt and returns 0. When none is left, takes nothing and returns the milliseconds until one
   * is.
   */
  spend(kind: Kind, name: string, now_ms: number): number {
    const [bucket, slot] = this.#placeOf(kind, name);
    const { at_once, refill_ms } = this.budgets[kind];
    const full_at_ms = Math.max(now_ms, bucket[slot] ?? 0) + refill_ms;
    const wait_ms = full_at_ms - now_ms - at_once * refill_ms;
    if (wait_ms > 0) return wait_ms;
    bucket[slot] = full_at_ms;
    return 0;
  }

  /** Returns true if no attempt is missing. */
  isFull(kind: Kind, name: string, now_ms: number): boolean {
    const [bucket, slot] = this.#placeOf(kind, name);
    return (bucket[slot] ?? 0) <= now_ms;
  }

  /** Gives back all attempts. */
  refill(kind: Kind, name: string): void {
    const [bucket, slot] = this.#placeOf(kind, name);
    bucket[slot] = 0;
  }

  /** Gives back an attempt that does not count after all. */
  giveBack(kind: Kind, name: string): void {
    const [bucket, slot] = this.#placeOf(kind, name);
    bucket[slot] = (bucket[slot] ?? 0) - this.budgets[kind].refill_ms;
  }

  #placeOf(kind: Kind, name: string): readonly [bucket: Float64Array, slot: number] {
    const bucket = this.#full_at_ms.get(kind) ?? new Float64Array(SLOTS);
    this.#full_at_ms.set(kind, bucket);
    return [bucket, halfSipHash(name, this.key) & (SLOTS - 1)];
  }
}
