import { FairQueue } from './fair-queue.ts';
import { QueuePerName } from './queue-per-name.ts';

/**
 * Turns at something that does few pieces of work at a time, such as one thread. Of one name one piece goes on at a time.
 * Next is the name that had the fewest turns since it began to wait: a thousand pieces of one delay another by one.
 */
export class FairTurns {
  readonly #queue = new FairQueue<() => void>();
  readonly #lines = new QueuePerName(1);
  #running = 0;
  /** How many pieces wait or go on, by name. */
  readonly #under_way_of = new Map<string, number>();
  #under_way = 0;

  constructor(private readonly at_once: number) {}

  /** How many pieces wait or go on. */
  get under_way(): number {
    return this.#under_way;
  }

  /** How many of them are of that name. */
  underWayOf(name: string): number {
    return this.#under_way_of.get(name) ?? 0;
  }

  /** What `work` resolves or rejects with, once the turn of its name has come. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#count(name, 1);
    try {
      return await this.#lines.run(name, () => this.#inTurn(name, work));
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

  async #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
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
