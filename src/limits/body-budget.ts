/** How many bytes of bodies are kept in memory while they wait. */
export interface BodyBudgetLimits {
  /** For all requests together. */
  readonly total_bytes: number;
  /** For the requests of one owner: an organization, or the payment provider. */
  readonly owner_bytes: number;
}

/** One organization can have dozens of the largest bodies waiting, and a few organizations cannot use up the total. */
const BODY_BUDGET_LIMITS: BodyBudgetLimits = {
  total_bytes: 128 * 1_048_576,
  owner_bytes: 32 * 1_048_576,
};

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

  /** Gives back what was taken for the owner. */
  give(owner: string, bytes: number): void {
    const left = (this.#taken.get(owner) ?? 0) - bytes;
    if (left > 0) this.#taken.set(owner, left);
    else this.#taken.delete(owner);
    this.#total -= bytes;
  }
}
