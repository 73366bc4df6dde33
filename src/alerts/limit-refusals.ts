/**
 * The requests that a spend limit has refused, by the project or key that has the limit. They are kept until the next
 * look for alerts, and are at most as many as there are limits.
 */
export class LimitRefusals {
  #smallest_micros = new Map<string, number>();

  /** Notes a refused request of that largest cost. */
  note(subject_id: string, amount_micros: number): void {
    const known_micros = this.#smallest_micros.get(subject_id) ?? Number.POSITIVE_INFINITY;
    this.#smallest_micros.set(subject_id, Math.min(known_micros, amount_micros));
  }

  /** Returns the smallest refused cost of each project and key since the last call. */
  take(): ReadonlyMap<string, number> {
    const taken = this.#smallest_micros;
    this.#smallest_micros = new Map();
    return taken;
  }
}
