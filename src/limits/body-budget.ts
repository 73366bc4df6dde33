/** How many bytes of bodies are kept in memory while they wait. */
export interface BodyBudgetLimits {
  /** For all requests together. */
  readonly total_bytes: number;
  /** For the requests of one organization. */
  readonly owner_bytes: number;
  /** What an arriving body counts for at least: the memory of its connection, of which it has hardly sent anything. */
  readonly body_bytes_min: number;
}

/** One organization can have dozens of the largest bodies waiting, and a few organizations cannot use up the total. */
const BODY_BUDGET_LIMITS: BodyBudgetLimits = {
  total_bytes: 96 * 1_048_576,
  owner_bytes: 32 * 1_048_576,
  body_bytes_min: 16_384,
};

/** What one body holds of a budget while it arrives. */
export interface BodyShare {
  /** Takes room for that many bytes more; false where there is none, and the body must end. */
  take(bytes: number): boolean;
  /** Gives everything back. */
  close(): void;
}

/**
 * The memory that bodies may take while they arrive, or wait to be planned. Clients who send many cannot use it up. An
 * owner may have as much as is still free: the next one finds room, for small bodies always.
 */
export class BodyBudget {
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(private readonly limits: BodyBudgetLimits = BODY_BUDGET_LIMITS) {}

  /** Bytes that are taken now, by all owners. */
  get taken_bytes(): number {
    return this.#total;
  }

  /** Takes that many bytes for the owner; false, with nothing taken, when that is above its limit or what is left. */
  take(owner: string, bytes: number): boolean {
    const taken = (this.#taken.get(owner) ?? 0) + bytes;
    const left = this.limits.total_bytes - this.#total - bytes;
    if (taken > Math.min(this.limits.owner_bytes, left)) return false;
    this.#taken.set(owner, taken);
    this.#total += bytes;
    return true;
  }

  /** A body of the owner begins to arrive. Who comes last finds no room, so that bodies that are nearly there end well. */
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

  /** Gives back what was taken for the owner. */
  give(owner: string, bytes: number): void {
    const left = (this.#taken.get(owner) ?? 0) - bytes;
    if (left > 0) this.#taken.set(owner, left);
    else this.#taken.delete(owner);
    this.#total -= bytes;
  }
}
