/** Numbers that look random and are the same for the same seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0 and below 1. */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number below the bound. */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }

  /** A time between two events that come independently of each other, so many on average. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }
}

/**
 * Which organization a request is of. Number `rank` (from 1) has a share in proportion to `rank` to the power of
 * `-skew`: with 0 all have the same, with 1 and 100,000 organizations the first has 8.3 %.
 */
export class Shares {
  /** Up to and with each rank. */
  readonly #sums: Float64Array;
  /** Ids of ranks: rows are locked in the order of ids, which says nothing of the traffic. */
  readonly #ids: Uint32Array;

  constructor(organizations: number, skew: number, random: Random) {
    this.#sums = new Float64Array(organizations);
    this.#ids = Uint32Array.from({ length: organizations }, (_, number) => number);
    let sum = 0;
    for (let index = 0; index < organizations; index += 1) {
      sum += (index + 1) ** -skew;
      this.#sums[index] = sum;
      const other = random.below(index + 1);
      const moved = this.#ids[other] ?? 0;
      this.#ids[other] = index;
      this.#ids[index] = moved;
    }
  }

  /** The share of the organization of that rank, from 1. */
  of(rank: number): number {
    const before = rank === 1 ? 0 : (this.#sums[rank - 2] ?? 0);
    return ((this.#sums[rank - 1] ?? 0) - before) / (this.#sums.at(-1) ?? 1);
  }

  /** The id of an organization, drawn by its share. */
  draw(random: Random): number {
    const wanted = random.uniform() * (this.#sums.at(-1) ?? 0);
    let low = 0;
    let high = this.#sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sums[middle] ?? 0) > wanted) high = middle;
      else low = middle + 1;
    }
    return this.#ids[low] ?? 0;
  }
}
