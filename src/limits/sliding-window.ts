/**
 * A counted entry of a window: its time and amount. The amount can be corrected while it is in the window.
 */
export interface WindowEntry {
  readonly at_ms: number;
  readonly amount: number;
}

interface MutableEntry extends WindowEntry {
  amount: number;
}

/**
 * An exact sliding log: the sum of the amounts of the last `span_ms`. An entry leaves exactly `span_ms` after
 * it was added. Pure: the time is an argument, and it must not go back between calls.
 */
export class SlidingWindow {
  #entries: MutableEntry[] = [];
  /**
   * Entries before this index have left. They are dropped in bulk, so that a removal does not move the whole
   * array.
   */
  #first = 0;
  #total = 0;

  constructor(readonly span_ms: number) {}

  /** Counts `amount` as made at `at_ms`; entries must be added in the order of their times. */
  add(at_ms: number, amount: number): WindowEntry {
    const entry: MutableEntry = { at_ms, amount };
    this.#entries.push(entry);
    this.#total += amount;
    return entry;
  }

  /** Replaces the amount of an entry of this window; for one that has left, changes nothing. */
  correct(entry: WindowEntry, amount: number): void {
    const index = this.#indexOf(entry);
    const found = index === -1 ? undefined : this.#entries[index];
    if (found === undefined) return;
    this.#total += amount - found.amount;
    found.amount = amount;
  }

  /** Returns the sum of the window at `now_ms`. */
  total(now_ms: number): number {
    this.#expire(now_ms);
    return this.#total;
  }

  /** Returns milliseconds until the oldest entry with an amount leaves; 0 when there is none. */
  untilOldestLeaves_ms(now_ms: number): number {
    this.#expire(now_ms);
    for (let index = this.#first; index < this.#entries.length; index += 1) {
      const entry = this.#entries[index];
      if (entry !== undefined && entry.amount > 0) return entry.at_ms + this.span_ms - now_ms;
    }
    return 0;
  }

  #expire(now_ms: number): void {
    let entry = this.#entries[this.#first];
    while (entry !== undefined && now_ms - entry.at_ms >= this.span_ms) {
      this.#total -= entry.amount;
      this.#first += 1;
      entry = this.#entries[this.#first];
    }
    if (this.#first > 1_024 && this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Finds an entry by binary search for its time, then among entries of the same time. */
  #indexOf(entry: WindowEntry): number {
    let low = this.#first;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle]?.at_ms ?? Number.POSITIVE_INFINITY) < entry.at_ms) low = middle + 1;
      else high = middle;
    }
    for (let index = low; this.#entries[index]?.at_ms === entry.at_ms; index += 1) {
      if (this.#entries[index] === entry) return index;
    }
    return -1;
  }
}
