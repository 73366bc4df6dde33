/** The parts of a request that sign-in needs. */
export interface Visit {
  /** The headers; only cookies, the user agent, and the host and origin of passkeys are read. */
  readonly headers: Headers;
  /** The client address that it counts by (`src/http/client-address.ts`). */
  readonly client_address: string;
}

/** A signed-in person, whose email address is verified. */
export interface SignedIn {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  /** True if the user has the operator's power in the console. */
  readonly is_operator: boolean;
  /** The time at which the account was created. */
  readonly created_at_ms: number;
  /** The client address at the start of the session. */
  readonly client_address: string;
  readonly session_id: string;
  /** The value of `x-csrf-token` in changes: the same for the whole session. */
  readonly csrf_token: string;
  /** The time at which the session ends, unless it is used before. */
  readonly expires_at_ms: number;
  /** `Set-Cookie` values for the response, where the session was extended. Usually none. */
  readonly set_cookies: readonly string[];
}

/** Cookies for the response, each the value of one `Set-Cookie` header. */
export interface Cookies {
  readonly set_cookies: readonly string[];
}

/** The outcome of a right password: a session, or a sign-in that waits ten minutes for its second factor. */
export interface SignInStep extends Cookies {
  readonly needs_second_factor: boolean;
}

/** The second factor of a user: an app that shows codes, and recovery codes. */
export interface SecondFactor {
  readonly is_on: boolean;
  /** The recovery codes that were not used yet. */
  readonly recovery_codes_left: number;
}

/**
 * The second factor of the user of a request's session. Every method with a password rejects with `not_signed_in`,
 * `wrong_password`, and `too_many_attempts`.
 */
export interface OwnSecondFactor {
  statusOf(session: Pick<SignedIn, 'user_id'>): Promise<SecondFactor>;
  /**
   * Returns the address that gives an app its secret, as a QR code does, and ten recovery codes. Sign-in needs no code
   * before `confirm`. Rejects with `second_factor_exists`.
   */
  begin(
    visit: Visit,
    given: { readonly password: string },
  ): Promise<{ readonly app_url: string; readonly recovery_codes: readonly string[] }>;
  /**
   * Turns the second factor on by a first code of the app. The cookies are those of a new session. Rejects with
   * `not_signed_in`, `wrong_code`, `second_factor_ended`, `too_many_attempts`.
   */
  confirm(visit: Visit, given: { readonly code: string }): Promise<Cookies>;
  /** Returns ten new recovery codes, and ends the old ones. Rejects with `no_second_factor`. */
  renewRecoveryCodes(visit: Visit, given: { readonly password: string }): Promise<readonly string[]>;
  /** Turns the second factor off. The cookies are those of a new session. */
  remove(visit: Visit, given: { readonly password: string }): Promise<Cookies>;
}

/** A passkey, as its owner sees it. */
export interface Passkey {
  readonly id: string;
  readonly name: string;
  readonly created_at_ms: number;
  /** The last sign-in with it; null for none. */
  readonly last_used_at_ms: number | null;
}

/** The question that an authenticator signs; all texts of passkeys are base64url (WebAuthn). */
export interface PasskeyQuestion {
  readonly challenge: string;
  /** The domain that passkeys belong to. */
  readonly domain: string;
}

/** The description of a passkey that a browser makes. */
export interface PasskeyRequest extends PasskeyQuestion {
  readonly service_name: string;
  readonly user_handle: string;
  readonly user_name: string;
  /** COSE's numbers of the algorithms, the preferred one first. */
  readonly algorithms: readonly number[];
  /** The passkeys that the user has, so that no authenticator makes a second one. */
  readonly known_ids: readonly string[];
}

/** A passkey that a browser has made. */
export interface NewPasskey {
  /** The owner's name of it; empty for that of the authenticator. */
  readonly name: string;
  readonly id: string;
  readonly client_data: string;
  readonly attestation: string;
  /** The ways to the authenticator, with commas. */
  readonly transports: string;
}

/** The answer of an authenticator to a question. */
export interface PasskeyAnswer {
  readonly id: string;
  readonly client_data: string;
  readonly authenticator_data: string;
  readonly signature: string;
}

/**
 * Passkeys, each of which is both steps of sign-in: its authenticator asks for a PIN, a finger or a face. Where they are
 * not offered, every method with a visit but `remove` rejects with `no_passkeys_here`.
 */
export interface OwnPasskeys {
  /** Returns true if the page of a request can use passkeys. */
  isOffered(headers: Headers): boolean;
  /** Returns the passkeys of a user, oldest first. */
  list(session: Pick<SignedIn, 'user_id'>): Promise<readonly Passkey[]>;
  /**
   * Begins to add a passkey, which must be there in five minutes. Rejects with `not_signed_in`, `wrong_password`,
   * `too_many_passkeys`, `too_many_attempts`.
   */
  begin(visit: Visit, given: { readonly password: string }): Promise<PasskeyRequest & Cookies>;
  /**
   * Adds the passkey that was begun in this session. Rejects with `not_signed_in`, `passkey_ended`, `wrong_passkey`,
   * `passkey_exists`, `invalid_name`.
   */
  add(visit: Visit, given: NewPasskey): Promise<Cookies>;
  /**
   * Removes a passkey of the signed-in user, and ends the user's other sessions, which it may have begun. Rejects with
   * `not_signed_in`, `wrong_password`, `too_many_attempts`, and `not_found` (`AccountError`).
   */
  remove(visit: Visit, given: { readonly passkey_id: string; readonly password: string }): Promise<void>;
  /** Begins a sign-in, for five minutes; it is the same for everybody. Rejects with `too_many_attempts`. */
  ask(visit: Visit): Promise<PasskeyQuestion & Cookies>;
  /** Signs in by the answer to the question, which is used up. Rejects with `passkey_ended`, `wrong_passkey`. */
  signIn(visit: Visit, answer: PasskeyAnswer): Promise<Cookies>;
}

/** An active session, as its user sees it. */
export interface OwnSession {
  readonly id: string;
  /** True if it is the session of the request. */
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

/** The rule of sign-up. */
export type SignUpRule = 'open' | 'invited';

/**
 * The access of people to the console: sign-up, sign-in, sessions, passwords. Every method rejects with
 * `SignInError` or `AccountError`, with the codes given at each. Every method rejects with
 * `too_many_attempts` where the address or the account has tried too often. It rejects with `too_busy` when
 * too many passwords wait to be checked, and otherwise as the database does.
 *
 * No response reveals which accounts exist. Mails are sent after the response, by work that is the same for
 * known and unknown addresses.
 */
export interface SignIn {
  /** The rule of sign-up. */
  readonly sign_up: SignUpRule;

  /**
   * Accepts a sign-up. Resolves before any lookup. A new address gets a mail with the link that verifies it.
   * An address with an account gets a mail that says so. Nobody is signed in by it.
   *
   * Rejects with `invitation_needed` where sign-up needs an invitation, and with `invalid_name`, `invalid_email`,
   * `password_too_short`, `password_too_long`, `password_too_common`, `too_busy`.
   */
  signUp(
    visit: Visit,
    given: { readonly name: string; readonly email: string; readonly password: string },
  ): Promise<void>;

  /**
   * Makes the account of an invited address, and signs in. No other mail is needed, because only a reader of its
   * mails has the token of an open invitation. An account that was never verified gets this name and password.
   * Rejects with `link_ended`, `has_account`, and as `signUp` does.
   */
  signUpInvited(
    visit: Visit,
    given: { readonly name: string; readonly password: string; readonly invitation_token: string },
  ): Promise<Cookies & { readonly user_id: string }>;

  /**
   * Returns true if an address has a verified account with a password; only for a person who has proved to read its
   * mails.
   */
  hasAccount(email: string): Promise<boolean>;

  /**
   * Mails the verification link again, if there is an unverified account. Resolves before any lookup. Rejects
   * with `invalid_email`, `too_busy`.
   */
  requestVerification(visit: Visit, email: string): Promise<void>;

  /**
   * Uses the token of a verification link (`/console/verify#token=…`) with the password of the sign-up, once.
   * It verifies the address, and signs the user in. The link alone has no effect: mail programs open links,
   * and somebody else may have signed up with the address. Rejects with `link_ended`, and with
   * `wrong_password`, after which the link still works.
   */
  verify(visit: Visit, given: { readonly token: string; readonly password: string }): Promise<Cookies>;

  /**
   * Signs in, and ends the oldest of more than 50 sessions of a user. A user with a second factor has no session before
   * `finishSignIn`. Rejects with `wrong_credentials`, and with `email_not_verified` when the password was right.
   */
  signIn(visit: Visit, given: { readonly email: string; readonly password: string }): Promise<SignInStep>;

  /**
   * Ends a sign-in that waits for its second factor, by a code of the app, or by a recovery code, which is used up.
   * Rejects with `wrong_code`, and with `second_factor_ended` after five wrong ones, ten minutes or a new password.
   */
  finishSignIn(visit: Visit, given: { readonly code: string }): Promise<Cookies>;

  /** The second factor of the signed-in user. */
  readonly second_factors: OwnSecondFactor;
  readonly passkeys: OwnPasskeys;

  /** Ends the session of the request, if there is one; the cookies remove it from the browser. */
  signOut(visit: Visit): Promise<Cookies>;

  /**
   * Returns the session of a request's cookies; null when there is none or it has ended. This extends it, in
   * the background where the database takes no writes at present. Creates the personal organization of a user
   * who has none.
   */
  sessionOf(headers: Headers): Promise<SignedIn | null>;

  /**
   * Returns true if a request has the cookie of a session, which may have ended since. Looks nothing up; such
   * a cookie cannot be made without the secret.
   */
  isCookieSigned(headers: Headers): Promise<boolean>;

  /** Returns the user's active sessions, newest first. */
  sessions(session: SignedIn): Promise<readonly OwnSession[]>;

  /** Ends a session of the user. Rejects with `not_found` (`AccountError`) for every other id. */
  endSession(session: SignedIn, session_id: string): Promise<void>;

  /** Ends all sessions of the user but this one. */
  endOtherSessions(session: SignedIn): Promise<void>;

  /**
   * Changes the password and ends all sessions; the cookies are those of a new one, with another CSRF token.
   * Rejects with `not_signed_in`, `wrong_password`, `password_too_short`, `password_too_long`,
   * `password_too_common`.
   */
  changePassword(
    visit: Visit,
    given: { readonly current_password: string; readonly new_password: string },
  ): Promise<Cookies>;

  /**
   * Mails a link that sets a new password, if there is an account. Resolves before any lookup. Rejects with
   * `invalid_email`, `too_busy`.
   */
  requestReset(visit: Visit, email: string): Promise<void>;

  /**
   * Sets the password by the token of a reset link (`/console/reset#token=…`), once. Ends all sessions of the
   * user and verifies the address. It signs nobody in. Rejects with `link_ended`, `password_too_short`,
   * `password_too_long`, `password_too_common`.
   */
  reset(visit: Visit, given: { readonly token: string; readonly new_password: string }): Promise<void>;

  /**
   * Deletes the account of the request's session, with all its sessions; the cookies remove it from the
   * browser. Rejects with `not_signed_in`, `wrong_password`, and as the rule in `src/accounts/` does: the
   * last owner of an organization with credit stays.
   */
  deleteAccount(visit: Visit, given: { readonly password: string }): Promise<Cookies>;

  /**
   * Counts a change against a user's limits for a minute and a day. Changes of accounts under 30 days of age
   * also count together by their sign-in address. Throws `too_many_attempts`.
   */
  countChange(session: Pick<SignedIn, 'user_id' | 'created_at_ms' | 'client_address'>): void;
  /** Counts a count of a request's tokens, which changes nothing. Throws `too_many_attempts`. */
  countTokenCount(session: Pick<SignedIn, 'user_id'>): void;
  /** Counts a request with rows of a batch, each of which is paid for. Throws `too_many_attempts`. */
  countBatch(session: Pick<SignedIn, 'user_id'>): void;
  /**
   * Counts a mail that invites an address: against its sender, and with all other invitations of that address.
   * Throws `invalid_email`, `too_many_attempts`.
   */
  countInvitation(session: Pick<SignedIn, 'user_id'>, email: string): void;

  /** Waits until all mails in progress are sent or have failed. */
  close(): Promise<void>;
}
