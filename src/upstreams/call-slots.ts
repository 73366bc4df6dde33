import { unlessAborted } from '../time/pause.ts';

/** The calls of one member: the number under way, and the functions that begin the waiting ones, oldest first. */
interface Line {
  under_way: number;
  readonly waiting: Set<() => void>;
}

/**
 * Limits the calls under way at one member to as many as are free for others. So one that does not answer takes
 * half of all, two take two thirds, and there is always room for the next.
 */
export class CallSlots {
  readonly #lines = new Map<string, Line>();
  #free: number;

  constructor(calls_max: number) {
    this.#free = calls_max;
  }

  /**
   * Resolves with a slot at that address, which is taken until the disposal. Calls to one address wait in order.
   * Rejects with the signal's reason.
   */
  async take(address: string, signal: AbortSignal): Promise<Disposable> {
    const line = this.#lineOf(address);
    if (line.waiting.size === 0 && this.#hasRoom(line)) this.#begin(line);
    else await this.#turn(line, signal);
    return { [Symbol.dispose]: () => this.#end(line) };
  }

  async #turn(line: Line, signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    line.waiting.add(turn.resolve);
    try {
      await unlessAborted(turn.promise, signal);
    } catch (error) {
      // A call that is given up in the moment of its turn has the slot already.
      if (!line.waiting.delete(turn.resolve)) this.#end(line);
      throw error;
    }
  }

  #begin(line: Line): void {
    line.under_way += 1;
    this.#free -= 1;
  }

  #end(line: Line): void {
    line.under_way -= 1;
    this.#free += 1;
    for (const other of this.#lines.values()) {
      for (const resume of other.waiting) {
        if (!this.#hasRoom(other)) break;
        other.waiting.delete(resume);
        this.#begin(other);
        resume();
      }
    }
  }

  #hasRoom({ under_way }: Line): boolean {
    return under_way < this.#free;
  }

  /** Returns the line of an address. It stays, because the addresses are the operator's. */
  #lineOf(address: string): Line {
    const line = this.#lines.get(address) ?? { under_way: 0, waiting: new Set() };
    this.#lines.set(address, line);
    return line;
  }
}
