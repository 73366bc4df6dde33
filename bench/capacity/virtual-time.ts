interface Event {
  readonly at_ms: number;
  /** Events of the same time happen in the order in which they were asked for. */
  readonly number: number;
  readonly happen: () => void;
}

/** A clock that stands still while something happens, and then is at the time of the next event. */
export class VirtualTime {
  readonly #heap: Event[] = [];
  #number = 0;
  #now_ms = 0;

  get now_ms(): number {
    return this.#now_ms;
  }

  after(delay_ms: number, happen: () => void): void {
    if (!(delay_ms >= 0)) throw new RangeError(`a delay of ${delay_ms} ms`);
    this.#number += 1;
    this.#push({ at_ms: this.#now_ms + delay_ms, number: this.#number, happen });
  }

  /** Lets everything happen, also what is asked for meanwhile. */
  run(): void {
    for (let event = this.#pop(); event !== undefined; event = this.#pop()) {
      this.#now_ms = event.at_ms;
      event.happen();
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent, event)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      let child = heap[below];
      if (child === undefined) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, child)) {
        below += 1;
        child = right;
      }
      if (isBefore(last, child)) break;
      heap[index] = child;
      index = below;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(left: Event, right: Event): boolean {
  return left.at_ms < right.at_ms || (left.at_ms === right.at_ms && left.number < right.number);
}
