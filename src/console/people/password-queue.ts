import { FairScheduler } from '../../scheduling/fair-scheduler.ts';
import type { Attempts } from './attempts.ts';
import { SignInError } from './errors.ts';

/**
 * The passwords that are hashed at once, each for some 50 ms of a core. The suspected addresses are those that sent a
 * wrong one lately.
 */
const TRUSTED_AT_ONCE = 2;
const SUSPECTED_AT_ONCE = 1;

/** The most hashes that wait or run: of one address, and in all. */
const OF_ADDRESS_MAX = 10;
const OF_SUSPECTED_MAX = 1_000;
const OF_ALL_MAX = 2 * OF_SUSPECTED_MAX;

/** After how long somebody may try again whom there was no room for. */
export const BUSY_RETRY_S = 60;

/**
 * Schedules work that hashes a password, fairly by address, and one of an address at a time. An address that sent a wrong
 * password lately has a queue of its own. Many addresses that guess therefore delay an owner's sign-in by at most one
 * hash each, and only while they begin.
 */
export class PasswordQueue {
  /** Counts what is under way, and runs one of an address at a time; it limits nothing else. */
  readonly #all = new FairScheduler(OF_ALL_MAX);
  readonly #trusted = new FairScheduler(TRUSTED_AT_ONCE);
  readonly #suspected = new FairScheduler(SUSPECTED_AT_ONCE);

  constructor(private readonly attempts: Pick<Attempts, 'addWrongPassword' | 'hasWrongPassword'>) {}

  /** Runs work that somebody waits for. Rejects as it does, and with `too_busy`. */
  async run<T>(client_address: string, work: () => Promise<T>): Promise<T> {
    const most = this.attempts.hasWrongPassword(client_address) ? OF_SUSPECTED_MAX : OF_ALL_MAX;
    if (this.#all.underWayOf(client_address) >= OF_ADDRESS_MAX || this.#all.under_way >= most) {
      throw new SignInError('too_busy', BUSY_RETRY_S);
    }
    // The queue is chosen when the address is next: of its guesses at once, only the first can precede an owner.
    return await this.#all.run(client_address, () => {
      const queue = this.attempts.hasWrongPassword(client_address) ? this.#suspected : this.#trusted;
      return queue.run(client_address, () => this.#watched(client_address, work));
    });
  }

  /** Runs work after its response: it precedes nobody who waits for one. */
  async runAfterAnswer(client_address: string, work: () => Promise<void>): Promise<void> {
    await this.#suspected.run(client_address, work);
  }

  async #watched<T>(client_address: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const is_wrong =
        error instanceof SignInError &&
        (error.code === 'wrong_credentials' || error.code === 'wrong_password');
      if (is_wrong) this.attempts.addWrongPassword(client_address);
      throw error;
    }
  }
}
