/** The work of one organization: how much of it goes on, and what resumes each piece that waits, oldest first. */
interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/** Lets only so much work of one organization go on at a time; what waits is taken in the order in which it came. */
export class PerOrganizationQueue {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly at_once: number) {}

  /** What `work` resolves or rejects with, once its turn has come. */
  async run<T>(organization_id: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lineOf(organization_id);
    if (line.running < this.at_once) line.running += 1;
    else await new Promise<void>((resume) => line.waiting.push(resume));
    try {
      return await work();
    } finally {
      // A place is handed on: whoever comes in between cannot take it.
      const resume = line.waiting.shift();
      if (resume === undefined) line.running -= 1;
      else resume();
      if (line.running === 0) this.#lines.delete(organization_id);
    }
  }

  #lineOf(organization_id: string): Line {
    const existing = this.#lines.get(organization_id);
    if (existing !== undefined) return existing;
    const created = { running: 0, waiting: [] };
    this.#lines.set(organization_id, created);
    return created;
  }
}
