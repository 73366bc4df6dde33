import { FairScheduler } from '../../scheduling/fair-scheduler.ts';
import type { Attempts } from './attempts.ts';
import { SignInError } from './sign-in-error.ts';

/** The passwords that are hashed at once, each for some 50 ms of a core: of addresses that are known, and of others. */
const OF_KNOWN_AT_ONCE = 1;
const OF_OTHERS_AT_ONCE = 2;

/** The most hashes that wait or run: of one address, and in all. Known addresses have room that others cannot take. */
const OF_ADDRESS_MAX = 10;
const OF_OTHERS_MAX = 1_000;
const OF_ALL_MAX = 2 * OF_OTHERS_MAX;

/** The seconds after which a client that was refused for lack of room may try again. */
export const BUSY_RETRY_S = 60;

/**
 * Schedules work that hashes a password, fairly by address, and one of an address at a time. An address is known while its
 * last password was right, and known ones have a queue of their own. Many addresses that guess therefore delay an owner
 * by one hash each at the first sign-in, and hardly at others.
 */
export class PasswordQueue {
  /** Counts what is under way, and runs one of an address at a time; it limits nothing else. */
  readonly #all = new FairScheduler(OF_ALL_MAX);
  readonly #known = new FairScheduler(OF_KNOWN_AT_ONCE);
  readonly #others = new FairScheduler(OF_OTHERS_AT_ONCE);

  constructor(private readonly attempts: Pick<Attempts, 'notePassword' | 'isKnown'>) {}

  /** Runs work that somebody waits for. Rejects as it does, and with `too_busy`. */
  async run<T>(client_address: string, work: () => Promise<T>): Promise<T> {
    const most = this.attempts.isKnown(client_address) ? OF_ALL_MAX : OF_OTHERS_MAX;
    if (this.#all.underWayOf(client_address) >= OF_ADDRESS_MAX || this.#all.under_way >= most) {
      throw new SignInError('too_busy', BUSY_RETRY_S);
    }
    // The queue is chosen when the address is next, so that a wrong password counts for the guesses behind it.
    return await this.#all.run(client_address, () => {
      const queue = this.attempts.isKnown(client_address) ? this.#known : this.#others;
      return queue.run(client_address, () => this.#noted(client_address, work));
    });
  }

  /** Runs work after its response: it precedes nobody of a known address. */
  async runAfterAnswer(client_address: string, work: () => Promise<void>): Promise<void> {
    await this.#others.run(client_address, work);
  }

  async #noted<T>(client_address: string, work: () => Promise<T>): Promise<T> {
    try {
      const done = await work();
      this.attempts.notePassword(client_address, true);
      return done;
    } catch (error) {
      if (error instanceof SignInError) this.attempts.notePassword(client_address, false);
      throw error;
    }
  }
}
