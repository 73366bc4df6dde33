/**
 * The work of one name: the number of running pieces, and the functions that resume the waiting ones, oldest
 * first.
 */
interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/** Limits the concurrent work of each name, such as of an organization. The rest waits in order. */
export class QueuePerName {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly at_once: number) {}

  /** Resolves with a slot of that name, which is taken until the disposal. */
  async take(name: string): Promise<Disposable> {
    const line = this.#lineOf(name);
    if (line.running < this.at_once) line.running += 1;
    else await new Promise<void>((resume) => line.waiting.push(resume));
    return { [Symbol.dispose]: () => this.#end(name, line) };
  }

  #end(name: string, line: Line): void {
    // The slot goes to the next waiting piece, so that no newcomer can take it.
    const resume = line.waiting.shift();
    if (resume === undefined) line.running -= 1;
    else resume();
    if (line.running === 0) this.#lines.delete(name);
  }

  #lineOf(name: string): Line {
    const existing = this.#lines.get(name);
    if (existing !== undefined) return existing;
    const created = { running: 0, waiting: [] };
    this.#lines.set(name, created);
    return created;
  }
}
