/** The limits of the memory for waiting bodies. */
export interface BodyBudgetLimits {
  /** The limit for all requests together. */
  readonly total_bytes: number;
  /** The limit for the requests of one organization. */
  readonly owner_bytes: number;
  /**
   * The least that an arriving body counts for: the memory of its connection, even when it has hardly sent
   * anything.
   */
  readonly body_bytes_min: number;
}

/**
 * One organization can have dozens of the largest bodies waiting, and a few organizations cannot use up the
 * total.
 */
const BODY_BUDGET_LIMITS: BodyBudgetLimits = {
  total_bytes: 96 * 1_048_576,
  owner_bytes: 32 * 1_048_576,
  body_bytes_min: 16_384,
};

/** One body's share of a budget while it arrives. */
export interface BodyShare {
  /** Takes room for that many more bytes. Returns false where there is none; then the body must end. */
  take(bytes: number): boolean;
  /** Gives everything back. */
  close(): void;
}

/**
 * The memory for bodies that arrive, or wait to be planned. Clients with many bodies cannot use it up: an
 * owner may have at most as much as is still free. Small bodies therefore always find room.
 */
export class BodyBudget {
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(private readonly limits: BodyBudgetLimits = BODY_BUDGET_LIMITS) {}

  /** The bytes taken now, by all owners. */
  get taken_bytes(): number {
    return this.#total;
  }

  /**
   * Takes that many bytes for the owner. Returns false and takes nothing when that exceeds its limit or the
   * free bytes.
   */
  take(owner: string, bytes: number): boolean {
    const taken = (this.#taken.get(owner) ?? 0) + bytes;
    const left = this.limits.total_bytes - this.#total - bytes;
    if (taken > Math.min(this.limits.owner_bytes, left)) return false;
    this.#taken.set(owner, taken);
    this.#total += bytes;
    return true;
  }

  /** Takes that many bytes until the disposal; null where `take` has no room. */
  reserve(owner: string, bytes: number): Disposable | null {
    return this.take(owner, bytes) ? { [Symbol.dispose]: () => this.give(owner, bytes) } : null;
  }

  /**
   * Returns the share of a new body. A lack of room stops the newest bodies first, so that older ones can be
   * completed.
   */
  open(owner: string): BodyShare {
    let taken = 0;
    let received = 0;
    return {
      take: (bytes) => {
        received += bytes;
        const more = Math.max(received, this.limits.body_bytes_min) - taken;
        if (more === 0) return true;
        if (!this.take(owner, more)) return false;
        taken += more;
        return true;
      },
      close: () => this.give(owner, taken),
    };
  }

  /** Gives back bytes of the owner. */
  give(owner: string, bytes: number): void {
    const left = (this.#taken.get(owner) ?? 0) - bytes;
    if (left > 0) this.#taken.set(owner, left);
    else this.#taken.delete(owner);
    this.#total -= bytes;
  }
}
