import { FairQueue } from './fair-queue.ts';
import { QueuePerName } from './queue-per-name.ts';

/**
 * Schedules work for a resource with few pieces at a time, such as one thread. Each name has one piece
 * running at a time. The name with the fewest pieces run since it began to wait is next: a thousand pieces of one
 * name delay another by one.
 */
export class FairScheduler {
  readonly #queue = new FairQueue<() => void>();
  readonly #lines = new QueuePerName(1);
  #running = 0;
  /** The number of waiting and running pieces, by name. */
  readonly #under_way_of = new Map<string, number>();
  #under_way = 0;

  constructor(private readonly at_once: number) {}

  /** The number of waiting and running pieces. */
  get under_way(): number {
    return this.#under_way;
  }

  /** Returns the number of waiting and running pieces of that name. */
  underWayOf(name: string): number {
    return this.#under_way_of.get(name) ?? 0;
  }

  /** Runs `work` when it is scheduled. Resolves and rejects as `work` does. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#count(name, 1);
    try {
      using _slot = await this.#lines.take(name);
      return await this.#runScheduled(name, work);
    } finally {
      this.#count(name, -1);
    }
  }

  #count(name: string, more: 1 | -1): void {
    this.#under_way += more;
    const of_name = this.underWayOf(name) + more;
    if (of_name === 0) this.#under_way_of.delete(name);
    else this.#under_way_of.set(name, of_name);
  }

  async #runScheduled<T>(name: string, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((begin) => {
      this.#queue.add(name, 'small', 1, begin);
      this.#beginNext();
    });
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#beginNext();
    }
  }

  #beginNext(): void {
    if (this.#running >= this.at_once) return;
    const next = this.#queue.take(() => true);
    if (next === undefined) return;
    this.#running += 1;
    next.piece();
  }
}
