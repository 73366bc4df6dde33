/** How many bytes of unfinished bodies are kept in memory. */
export interface BodyBudgetLimits {
  /** For all requests together. */
  readonly total_bytes: number;
  /** For the requests of one owner: a key, or the payment provider. */
  readonly owner_bytes: number;
}

/** One key can send dozens of the largest bodies at once, and four keys are needed to use up what all have. */
export const BODY_BUDGET_LIMITS: BodyBudgetLimits = {
  total_bytes: 128 * 1_048_576,
  owner_bytes: 32 * 1_048_576,
};

/** The memory that bodies may take while they arrive, so that clients who never finish theirs cannot use it up. */
export class BodyBudget {
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(private readonly limits: BodyBudgetLimits = BODY_BUDGET_LIMITS) {}

  /** Bytes that are taken now, by all owners. */
  get taken_bytes(): number {
    return this.#total;
  }

  /** Takes that many bytes for the owner; false, with nothing taken, when they are above its limit or that of all. */
  take(owner: string, bytes: number): boolean {
    const taken = (this.#taken.get(owner) ?? 0) + bytes;
    if (taken > this.limits.owner_bytes || this.#total + bytes > this.limits.total_bytes) return false;
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
