import type { VirtualTime } from './virtual-time.ts';

/** So many servers, or places, and a queue before them: first come, first served. */
export class Places {
  readonly #waiting = new Queue<() => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  take(taken: () => void): void {
    if (this.#free > 0) {
      this.#free -= 1;
      taken();
    } else this.#waiting.add(taken);
  }

  giveBack(): void {
    const next = this.#waiting.next();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

/** The cores of a server. What was begun is finished: no slices. */
export class Cores {
  readonly #places: Places;
  busy_ms = 0;

  constructor(
    private readonly time: VirtualTime,
    readonly count: number,
  ) {
    this.#places = new Places(count);
  }

  run(duration_ms: number, done: () => void): void {
    this.#places.take(() => {
      this.busy_ms += duration_ms;
      this.time.after(duration_ms, () => {
        this.#places.giveBack();
        done();
      });
    });
  }
}

/** Locks of rows, each of one holder, given in the order in which they were asked for. */
export class RowLocks {
  /** Who waits for each row that somebody has. */
  readonly #rows = new Map<number, Queue<() => void>>();

  /** Takes the locks one after the other, as PostgreSQL does, and keeps what it has while it waits. */
  takeAll(rows: readonly number[], taken: () => void, from = 0): void {
    for (let index = from; index < rows.length; index += 1) {
      const row = rows[index] ?? 0;
      const waiting = this.#rows.get(row);
      if (waiting !== undefined) {
        waiting.add(() => this.takeAll(rows, taken, index + 1));
        return;
      }
      this.#rows.set(row, new Queue());
    }
    taken();
  }

  giveBackAll(rows: readonly number[]): void {
    for (const row of rows) {
      const next = this.#rows.get(row)?.next();
      if (next === undefined) this.#rows.delete(row);
      else next();
    }
  }
}

/** A disk's flush, or a standby's: whoever comes during one is in the next, together with all others. */
export class GroupedFlush {
  #waiting: (() => void)[] = [];
  #is_busy = false;
  flushes = 0;

  constructor(
    private readonly time: VirtualTime,
    private readonly duration_ms: number,
  ) {}

  flush(done: () => void): void {
    this.#waiting.push(done);
    if (!this.#is_busy) this.#begin();
  }

  #begin(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.#is_busy = true;
    this.flushes += 1;
    this.time.after(this.duration_ms, () => {
      if (this.#waiting.length > 0) this.#begin();
      else this.#is_busy = false;
      for (const done of group) done();
    });
  }
}

class Queue<T> {
  #items: T[] = [];
  #first = 0;

  add(item: T): void {
    this.#items.push(item);
  }

  next(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#first += 1;
    if (this.#first > 32 && 2 * this.#first > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}
