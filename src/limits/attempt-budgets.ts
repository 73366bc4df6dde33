import { type HashKey, halfSipHash } from '../hashing/half-siphash.ts';

/** How often something may be tried: so often at once, and once more for each time that has passed. */
export interface AttemptBudget {
  readonly at_once: number;
  readonly refill_ms: number;
}

/** Places for names: a power of two, in 128 kilobytes for each kind. */
const SLOTS = 16_384;

/**
 * Buckets of attempts, by kind and by the name of who or what is tried. Pure: the caller gives the time, from a clock
 * that never goes back, and a random key of the hash.
 *
 * Names share a fixed number of places by a keyed hash. Nothing is ever evicted, so no number of names resets a budget,
 * and the key keeps an attacker from choosing whose place is shared.
 */
export class AttemptBudgets<Kind extends string> {
  /** When each bucket is full again, by kind and place. */
  readonly #full_at_ms = new Map<Kind, Float64Array>();

  constructor(
    private readonly budgets: Readonly<Record<Kind, AttemptBudget>>,
    private readonly key: HashKey,
  ) {}

  /** Takes one attempt. Returns 0, or, when none is left, takes nothing and returns the milliseconds until one is. */
  spend(kind: Kind, name: string, now_ms: number): number {
    const [bucket, slot] = this.#placeOf(kind, name);
    const { at_once, refill_ms } = this.budgets[kind];
    const full_at_ms = Math.max(now_ms, bucket[slot] ?? 0) + refill_ms;
    const wait_ms = full_at_ms - now_ms - at_once * refill_ms;
    if (wait_ms > 0) return wait_ms;
    bucket[slot] = full_at_ms;
    return 0;
  }

  /** Gives an attempt back that turned out not to count. */
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
