import { drawHashKey } from '../../hashing/half-siphash.ts';
import { AttemptBudgets } from '../../limits/attempt-budgets.ts';
import { type Clock, DAY_MS, MINUTE_MS, MS_PER_S } from '../../time/clock.ts';
import { SignInError } from './errors.ts';

/**
 * The limits of a client's address, which may be that of a whole office. Sign-ups, and changes by new
 * accounts, also have daily limits, because each stays in the database.
 */
const BY_ADDRESS = {
  sign_in: { at_once: 30, refill_ms: 10 * MS_PER_S },
  sign_up: { at_once: 10, refill_ms: 30 * MINUTE_MS },
  mail: { at_once: 10, refill_ms: MINUTE_MS },
  link: { at_once: 20, refill_ms: 10 * MS_PER_S },
  passkey: { at_once: 60, refill_ms: 5 * MS_PER_S },
  changes_of_new: { at_once: 2_000, refill_ms: DAY_MS / 2_000 },
  right_password: { at_once: 1, refill_ms: 30 * DAY_MS },
};

/**
 * The limits of an account, known or not: guesses at one password, mails to one mailbox, and mails of one
 * user. A person who is signed in, or has the verification link, has separate guesses, which nobody else can
 * use up.
 */
const BY_ACCOUNT = {
  password: { at_once: 10, refill_ms: MINUTE_MS },
  own_password: { at_once: 10, refill_ms: MINUTE_MS },
  second_factor: { at_once: 10, refill_ms: MINUTE_MS },
  mailbox: { at_once: 5, refill_ms: 10 * MINUTE_MS },
  changes: { at_once: 120, refill_ms: MS_PER_S / 2 },
  changes_of_day: { at_once: 2_000, refill_ms: DAY_MS / 2_000 },
  token_counts: { at_once: 60, refill_ms: MS_PER_S },
  batches: { at_once: 60, refill_ms: MS_PER_S },
  invitations: { at_once: 50, refill_ms: 5 * MINUTE_MS },
};

/** Gives the attempt back, because it succeeded and was no guess. */
export type GiveBack = () => void;

/** Limits the attempts at sign-in, by the client's address and by the account. Kept in memory. */
export class Attempts {
  readonly #addresses = new AttemptBudgets(BY_ADDRESS, drawHashKey());
  readonly #accounts = new AttemptBudgets(BY_ACCOUNT, drawHashKey());

  constructor(private readonly clock: Pick<Clock, 'monotonic_ms'>) {}

  /** Counts an attempt of an address. Throws `too_many_attempts`. */
  ofAddress(kind: Exclude<keyof typeof BY_ADDRESS, 'right_password'>, client_address: string): void {
    refuseFor(this.#addresses.spend(kind, client_address, this.clock.monotonic_ms()));
  }

  /** Notes that the last password of an address was right, or not. */
  notePassword(client_address: string, is_right: boolean): void {
    if (is_right) this.#addresses.spend('right_password', client_address, this.clock.monotonic_ms());
    else this.#addresses.refill('right_password', client_address);
  }

  /** Returns true if the last password of an address was right, in the last 30 days. */
  isKnown(client_address: string): boolean {
    return !this.#addresses.isFull('right_password', client_address, this.clock.monotonic_ms());
  }

  /** Counts an attempt on an account, named by its email address or its id. Throws `too_many_attempts`. */
  onAccount(kind: keyof typeof BY_ACCOUNT, account: string): GiveBack {
    refuseFor(this.#accounts.spend(kind, account, this.clock.monotonic_ms()));
    return () => this.#accounts.giveBack(kind, account);
  }
}

function refuseFor(wait_ms: number): void {
  if (wait_ms > 0) throw new SignInError('too_many_attempts', Math.ceil(wait_ms / MS_PER_S));
}
