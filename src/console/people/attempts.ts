import type { SignInErrorCode } from '../../errors/errors.ts';
import { drawHashKey } from '../../hashing/half-siphash.ts';
import { AttemptBudgets } from '../../limits/attempt-budgets.ts';
import { type Clock, DAY_MS, MINUTE_MS, MS_PER_S } from '../../time/clock.ts';
import { SignInError } from './sign-in-error.ts';

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

/** The limit of the mails of one purpose to one mailbox. */
const MAILS = { at_once: 5, refill_ms: 10 * MINUTE_MS };

/**
 * The limits of an account, known or not: guesses at one password, mails to one mailbox, and mails of one
 * user. A person who is signed in, or has the verification link, has separate guesses, which nobody else can
 * use up. Mails count by purpose, because a stranger may spend those that send nothing, and so leave no link.
 */
const BY_ACCOUNT = {
  password: { at_once: 10, refill_ms: MINUTE_MS },
  own_password: { at_once: 10, refill_ms: MINUTE_MS },
  second_factor: { at_once: 10, refill_ms: MINUTE_MS },
  reset_mails: MAILS,
  verification_mails: MAILS,
  sign_up_mails: MAILS,
  invitation_mails: MAILS,
  changes: { at_once: 120, refill_ms: MS_PER_S / 2 },
  changes_of_day: { at_once: 2_000, refill_ms: DAY_MS / 2_000 },
  token_counts: { at_once: 60, refill_ms: MS_PER_S },
  batches: { at_once: 60, refill_ms: MS_PER_S },
  invitations: { at_once: 50, refill_ms: 5 * MINUTE_MS },
};

/** The purposes of the mails for which a stranger can ask. */
export type RequestedMails = 'reset_mails' | 'verification_mails' | 'sign_up_mails';

/** The secrets at which somebody can guess. */
type Guesses = 'password' | 'own_password' | 'second_factor';

/** The refusals of a wrong guess. */
const WRONG: ReadonlySet<SignInErrorCode> = new Set<SignInErrorCode>([
  'wrong_credentials',
  'wrong_password',
  'wrong_code',
]);

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
  onAccount(kind: Exclude<keyof typeof BY_ACCOUNT, Guesses>, account: string): void {
    refuseFor(this.#accounts.spend(kind, account, this.clock.monotonic_ms()));
  }

  /**
   * Does work that checks a secret of an account. It counts as a guess while it runs, so that many at once are limited,
   * and afterwards only if the secret was wrong. Rejects as the work does, and with `too_many_attempts`.
   */
  async guess<T>(kind: Guesses, account: string, work: () => Promise<T>): Promise<T> {
    refuseFor(this.#accounts.spend(kind, account, this.clock.monotonic_ms()));
    let is_wrong = false;
    try {
      return await work();
    } catch (error) {
      is_wrong = error instanceof SignInError && WRONG.has(error.code);
      throw error;
    } finally {
      // Our own failures cost a person nothing: with them, the right secret would have failed too.
      if (!is_wrong) this.#accounts.giveBack(kind, account);
    }
  }
}

function refuseFor(wait_ms: number): void {
  if (wait_ms > 0) throw new SignInError('too_many_attempts', Math.ceil(wait_ms / MS_PER_S));
}
