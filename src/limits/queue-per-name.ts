/** The work of one name: how much of it goes on, and what resumes each piece that waits, oldest first. */
interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/** Lets only so much work of one name go on at a time, such as of an organization. The rest waits in its order. */
export class QueuePerName {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly at_once: number) {}

  /** What `work` resolves or rejects with, once its turn has come. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lineOf(name);
    if (line.running < this.at_once) line.running += 1;
    else await new Promise<void>((resume) => line.waiting.push(resume));
    try {
      return await work();
    } finally {
      // A place is handed on: whoever comes in between cannot take it.
      const resume = line.waiting.shift();
      if (resume === undefined) line.running -= 1;
      else resume();
      if (line.running === 0) this.#lines.delete(name);
    }
  }

  #lineOf(name: string): Line {
    const existing = this.#lines.get(name);
    if (existing !== undefined) return existing;
    const created = { running: 0, waiting: [] };
    this.#lines.set(name, created);
    return created;
  }
}
