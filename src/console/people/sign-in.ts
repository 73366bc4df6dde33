/** A request as sign-in needs it. */
export interface Visit {
  /** Its headers; only cookies and the user agent are read. */
  readonly headers: Headers;
  /** What its client is counted by (`src/http/client-address.ts`). */
  readonly client_address: string;
}

/** Who is signed in. Everybody who is has verified their email address. */
export interface SignedIn {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  /** Whether the user may do in the console what the command line may do. */
  readonly is_operator: boolean;
  /** When the account was made. */
  readonly created_at_ms: number;
  /** From where the session was begun. */
  readonly client_address: string;
  readonly session_id: string;
  /** What a change must carry in `x-csrf-token`: the same for the whole session. */
  readonly csrf_token: string;
  /** When the session ends, unless it is used before. */
  readonly expires_at_ms: number;
  /** `Set-Cookie` values to answer with: the session was extended. Usually none. */
  readonly set_cookies: readonly string[];
}

/** Cookies to answer with, each the value of one `Set-Cookie` header. */
export interface Cookies {
  readonly set_cookies: readonly string[];
}

/** A sign-in that has not ended, as its user sees it. */
export interface OwnSession {
  readonly id: string;
  /** Whether it is the one that asks. */
  readonly is_current: boolean;
  /** Empty where the client sent none. */
  readonly user_agent: string;
  /** An IPv4 address or the /64 network of an IPv6 address. */
  readonly client_address: string;
  readonly created_at_ms: number;
  /** Exact to five minutes. */
  readonly last_seen_at_ms: number;
  readonly expires_at_ms: number;
}

/** Who may sign up. */
export type SignUpRule = 'open' | 'invited';

/**
 * How people come into the console: sign-up, sign-in, sessions, passwords. Everything rejects with `SignInError` or
 * `AccountError`, whose codes stand at each function. Everything rejects with `too_many_attempts` where the address or
 * the account has tried too often. With `too_busy` too many passwords wait to be checked. Otherwise it is what the
 * database throws.
 *
 * No answer tells which accounts exist. What is mailed is mailed after the answer, by work that is the same for known
 * and unknown addresses.
 */
export interface SignIn {
  /** Who may sign up. */
  readonly sign_up: SignUpRule;

  /**
   * Takes a sign-up. Resolves before anything is looked up. A new address gets a mail with the link that verifies it;
   * one that has an account gets a mail that says so. Nobody is signed in by it.
   *
   * Where people come by invitation only, the token must belong to an open invitation of that address
   * (`invitation_needed`). Rejects with `invalid_name`, `invalid_email`, `password_too_short`, `password_too_long`,
   * `invitation_needed`, `too_busy`.
   */
  signUp(
    visit: Visit,
    given: {
      readonly name: string;
      readonly email: string;
      readonly password: string;
      readonly invitation_token?: string | undefined;
    },
  ): Promise<void>;

  /**
   * Mails the verification link again, where there is an account that is not verified. Resolves before anything is
   * looked up. Rejects with `invalid_email`, `too_busy`.
   */
  requestVerification(visit: Visit, email: string): Promise<void>;

  /**
   * Takes the token of a verification link (`/console/verify#token=…`) with the password of the sign-up, once. The
   * address counts as verified then, and who asks is signed in. The link alone does nothing: mail programs open links,
   * and somebody else may have signed up with the address. Rejects with `link_ended`, and with `wrong_password`, after
   * which the link still works.
   */
  verify(visit: Visit, given: { readonly token: string; readonly password: string }): Promise<Cookies>;

  /** Signs in; of more than 50 sessions of a user the oldest end. Rejects with `wrong_credentials`, and with `email_not_verified` when the password was right. */
  signIn(visit: Visit, given: { readonly email: string; readonly password: string }): Promise<Cookies>;

  /** Ends the session of the request, if there is one; the cookies take it out of the browser. */
  signOut(visit: Visit): Promise<Cookies>;

  /**
   * The session of a request's cookies; null when there is none or it has ended. It is extended by that, beside the
   * answer where the database takes no writes just now. Makes the personal organization of a user who has none yet.
   */
  sessionOf(headers: Headers): Promise<SignedIn | null>;

  /**
   * Whether a request carries a cookie that was given to a session, which may have ended since. Nothing is looked up,
   * and nobody can make such a cookie without the secret.
   */
  isCookieSigned(headers: Headers): Promise<boolean>;

  /** The user's sessions that have not ended, newest first. */
  sessions(session: SignedIn): Promise<readonly OwnSession[]>;

  /** Ends a session of the user. Rejects with `not_found` (`AccountError`) for every other id. */
  endSession(session: SignedIn, session_id: string): Promise<void>;

  /** Ends all sessions of the user but this one. */
  endOtherSessions(session: SignedIn): Promise<void>;

  /**
   * Changes the password and ends all sessions; the cookies carry a new one, with another CSRF token. Rejects with
   * `not_signed_in`, `wrong_password`, `password_too_short`, `password_too_long`.
   */
  changePassword(
    visit: Visit,
    given: { readonly current_password: string; readonly new_password: string },
  ): Promise<Cookies>;

  /**
   * Mails a link that sets a new password, where there is an account. Resolves before anything is looked up. Rejects
   * with `invalid_email`, `too_busy`.
   */
  requestReset(visit: Visit, email: string): Promise<void>;

  /**
   * Sets the password by the token of a reset link (`/console/reset#token=…`), once. Ends all sessions of the user and
   * verifies the address. Nobody is signed in by it. Rejects with `link_ended`, `password_too_short`,
   * `password_too_long`.
   */
  reset(visit: Visit, given: { readonly token: string; readonly new_password: string }): Promise<void>;

  /**
   * Deletes the account of the request's session, with all its sessions; the cookies take it out of the browser.
   * Rejects with `not_signed_in`, `wrong_password`, and what the rule in `src/accounts/` refuses: the last owner of an
   * organization with credit stays.
   */
  deleteAccount(visit: Visit, given: { readonly password: string }): Promise<Cookies>;

  /**
   * Counts a change of a user against what one may change in a minute and in a day. Those of accounts under 30 days of
   * age also count together by the address that they signed in from. Throws `too_many_attempts`.
   */
  countChange(session: Pick<SignedIn, 'user_id' | 'created_at_ms' | 'client_address'>): void;
  /**
   * Counts a mail that invites an address: against the user who sends it, and with the other mails to that mailbox.
   * Throws `invalid_email`, `too_many_attempts`.
   */
  countInvitation(session: Pick<SignedIn, 'user_id'>, email: string): void;

  /** Waits until all mails that are under way are sent or have failed. */
  close(): Promise<void>;
}
