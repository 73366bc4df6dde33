import { createHmac } from 'node:crypto';
import type { DBAdapterInstance, User } from 'better-auth';
import { AccountError } from '../../access/account-error.ts';
import { checkedEmail, checkedName, isEmail } from '../../accounts/names.ts';
import type { PasskeyAction } from '../../accounts/passkeys.ts';
import type { SecondFactorAction } from '../../accounts/second-factors.ts';
import type { Identifiers } from '../../contract/identifiers.ts';
import { inBackground, type Problems } from '../../problems/problems.ts';
import { QueuePerName } from '../../scheduling/queue-per-name.ts';
import { type Clock, DAY_MS, MS_PER_S } from '../../time/clock.ts';
import { inTime } from '../../time/in-time.ts';
import { Attempts, type RequestedMails } from './attempts.ts';
import { cookieHeader, cookiesOf, deleteOwn, headersOf, nullIfNotSignedIn, told } from './auth-calls.ts';
import {
  type BetterAuth,
  isCookieSigned,
  openBetterAuth,
  type PasswordHashing,
  SESSION_S,
  SESSION_UPDATE_S,
  userAwaitingSecondFactor,
} from './better-auth.ts';
import { LinkTokens, NOBODY } from './link-tokens.ts';
import type { Links } from './links.ts';
import type { Mail, Mailer } from './mail.ts';
import { existingAccountMail, resetMail, verificationMail } from './mails.ts';
import { Passkeys } from './passkeys.ts';
import { BUSY_RETRY_S, PasswordQueue } from './password-queue.ts';
import { checkNewPassword } from './password-rules.ts';
import { RelyingParties } from './relying-party.ts';
import { SecondFactors } from './second-factors.ts';
import type { Cookies, OwnSession, SignedIn, SignInStep, SignUpRule, Visit } from './sign-in.ts';
import { SignInError } from './sign-in-error.ts';

/** The most work after responses at once; each piece hashes a password or sends a mail. */
const AFTER_ANSWERS_MAX = 200;

/** The age up to which accounts share a budget of changes with others of their address. */
const NEW_ACCOUNT_MS = 30 * DAY_MS;

/**
 * The longest wait of a response for the extension of its session, which is quick unless the database takes
 * no writes.
 */
const EXTENDING_MS = 250;

/** The most sessions of one user: fewer than better-auth lists, so that it lists all of them. */
const SESSIONS_MAX = 50;

/** The rules of accounts that sign-in needs. */
export interface AccountRules {
  /** Creates the personal organization of a user, unless there is one. */
  ensurePersonalOrganization(user_id: string): Promise<unknown>;
  /** Deletes an account, whose password was checked. Rejects with `AccountError`. */
  deleteAccount(user_id: string): Promise<void>;
  /** Returns the address of an open invitation; null where the token belongs to none. */
  invitedAddress(token: string): Promise<string | null>;
  /** Notes in the audit log what a user has done with their second factor. */
  noteSecondFactor(user_id: string, action: SecondFactorAction): Promise<void>;
  /** Notes in the audit log that a user has added or removed a passkey. */
  notePasskey(user_id: string, action: PasskeyAction, passkey_id: string): Promise<void>;
}

/** The parts of sign-in. */
export interface SignInParts {
  readonly database: DBAdapterInstance;
  /** The secret that signs cookies and derives CSRF tokens. */
  readonly secret: string;
  readonly is_https: boolean;
  /** The address that people open, to which passkeys belong; null for passkeys of pages on this machine alone. */
  readonly public_url: string | null;
  readonly sign_up: SignUpRule;
  readonly links: Links;
  readonly mailer: Mailer;
  readonly accounts: AccountRules;
  readonly clock: Clock;
  readonly identifiers: Pick<Identifiers, 'id' | 'linkToken'>;
  readonly problems: Pick<Problems, 'report'>;
  /** Replaces better-auth's hashing, for tests that count. */
  readonly passwords?: PasswordHashing | undefined;
}

/**
 * The access of people to the console, on better-auth: sign-up, sign-in, sessions, passwords. Every method rejects with
 * `SignInError` or `AccountError`, with the codes given at each. Every method rejects with
 * `too_many_attempts` where the address or the account has tried too often. It rejects with `too_busy` when
 * too many passwords wait to be checked, and otherwise as the database does.
 *
 * No response reveals which accounts exist. Mails are sent after the response, by work that is the same for
 * known and unknown addresses.
 */
export class PasswordSignIn {
  readonly #parts: SignInParts;
  readonly #auth: BetterAuth;
  readonly #tokens: LinkTokens;
  readonly #attempts: Attempts;
  readonly #queue: PasswordQueue;
  /**
   * One sign-up of an email address runs at a time: of several at once, only the first creates an account.
   */
  readonly #sign_ups = new QueuePerName(1);
  readonly #after_answers = new Set<Promise<void>>();
  /** The ids of the sessions that are being extended. */
  readonly #extending = new Set<string>();
  /** The second factor of the signed-in user. */
  readonly second_factors: SecondFactors;
  readonly passkeys: Passkeys;

  constructor(parts: SignInParts) {
    this.#parts = parts;
    this.#attempts = new Attempts(parts.clock);
    this.#queue = new PasswordQueue(this.#attempts);
    const parties = new RelyingParties(parts.public_url);
    this.#auth = openBetterAuth({
      ...parts,
      relying_party: parties.of_public_url,
      onFailure: (error) => this.#report('sign_in', error),
      onSignUp: (user) => this.#mailVerification(user),
      onTakenSignUp: (user) => this.#mailExisting(user),
      onReset: (user) => this.#afterReset(user),
    });
    this.#tokens = new LinkTokens(this.#auth, parts);
    this.second_factors = new SecondFactors({
      auth: this.#auth,
      attempts: this.#attempts,
      now_ms: () => parts.clock.now_ms(),
      accounts: parts.accounts,
      requireSession: (visit) => this.#requireSession(visit),
      passwordHashOf: (user_id) => this.#passwordHashOfUser(user_id),
      withPassword: (visit, session, work) => this.#withPassword(visit, session, work),
    });
    this.passkeys = new Passkeys({
      auth: this.#auth,
      attempts: this.#attempts,
      parties,
      clock: parts.clock,
      accounts: parts.accounts,
      requireSession: (visit) => this.#requireSession(visit),
      requirePassword: (visit, session, password) => this.#requirePassword(visit, session, password),
      endExpired: () => this.#tokens.endExpired(),
      endOtherSessions: (session) => this.endOtherSessions(session),
      afterSignIn: (user_id) => this.#tidyAfterSignIn(user_id),
    });
  }

  /** The rule of sign-up. */
  get sign_up(): SignUpRule {
    return this.#parts.sign_up;
  }

  /**
   * Accepts a sign-up. Resolves before any lookup. A new address gets a mail with the link that verifies it.
   * An address with an account gets a mail that says so. Nobody is signed in by it.
   *
   * Rejects with `invitation_needed` where sign-up needs an invitation, and with `invalid_name`, `invalid_email`,
   * `password_too_short`, `password_too_long`, `password_too_common`, `too_busy`.
   */
  signUp(
    { client_address }: Visit,
    given: { readonly name: string; readonly email: string; readonly password: string },
  ): Promise<void> {
    return Promise.try(() => {
      if (this.sign_up === 'invited') throw new SignInError('invitation_needed');
      const { password } = given;
      const name = checkedName(given.name);
      const email = checkedEmail(given.email);
      checkNewPassword(password);
      this.#attempts.ofAddress('sign_up', client_address);
      this.#afterAnswer('sign_up_mails', email, async () => {
        using _slot = await this.#sign_ups.take(email);
        await this.#queue.runAfterAnswer(client_address, async () => {
          await this.#auth.api.signUpEmail({ body: { name, email, password } });
        });
      });
    });
  }

  /**
   * Makes the account of an invited address, and signs in. No other mail is needed, because only a reader of its
   * mails has the token of an open invitation. An account that was never verified gets this name and password.
   * Rejects with `link_ended`, `has_account`, and as `signUp` does.
   */
  async signUpInvited(
    visit: Visit,
    given: { readonly name: string; readonly password: string; readonly invitation_token: string },
  ): Promise<Cookies & { readonly user_id: string }> {
    const { password } = given;
    const name = checkedName(given.name);
    checkNewPassword(password);
    this.#attempts.ofAddress('sign_up', visit.client_address);
    const invited = await this.#parts.accounts.invitedAddress(given.invitation_token);
    if (invited === null) throw new SignInError('link_ended');
    const email = checkedEmail(invited);
    using _slot = await this.#sign_ups.take(email);
    return await this.#queue.run(visit.client_address, async () => {
      const user_id = await this.#createProven(email, name, password);
      return { user_id, ...(await this.#newSession(visit, email, password)) };
    });
  }

  /**
   * Returns true if an address has a verified account with a password; only for a person who has proved to read its
   * mails.
   */
  async hasAccount(email: string): Promise<boolean> {
    const { internalAdapter } = await this.#auth.$context;
    const user = await this.#findUser(email);
    if (user === null || !user.emailVerified) return false;
    return (await internalAdapter.findCredentialAccount(user.id)) !== null;
  }

  /**
   * Mails the verification link again, if there is an unverified account. Resolves before any lookup. Rejects
   * with `invalid_email`, `too_busy`.
   */
  requestVerification({ client_address }: Visit, given: string): Promise<void> {
    return this.#mailAfterAnswer('verification_mails', client_address, given, async (email) => {
      const user = await this.#findUser(email);
      if (user !== null && !user.emailVerified) await this.#mailVerification(user);
      else await this.#tokens.issue('verify-email', null);
    });
  }

  /**
   * Uses the token of a verification link (`/console/verify#token=…`) with the password of the sign-up, once.
   * It verifies the address, and signs the user in. The link alone has no effect: mail programs open links,
   * and somebody else may have signed up with the address. Rejects with `link_ended`, and with
   * `wrong_password`, after which the link still works.
   */
  async verify(visit: Visit, given: { readonly token: string; readonly password: string }): Promise<Cookies> {
    this.#attempts.ofAddress('link', visit.client_address);
    return await this.#queue.run(visit.client_address, () => this.#verify(visit, given));
  }

  async #verify(
    visit: Visit,
    given: { readonly token: string; readonly password: string },
  ): Promise<Cookies> {
    const { internalAdapter } = await this.#auth.$context;
    const user_id = await this.#tokens.find('verify-email', given.token);
    const user = user_id === null ? null : await internalAdapter.findUserById(user_id);
    if (user === null) throw new SignInError('link_ended');
    await this.#checkOwnPassword(user.id, given.password);
    if ((await this.#tokens.take('verify-email', given.token)) === null) throw new SignInError('link_ended');
    await internalAdapter.updateUser(user.id, { emailVerified: true });
    return await this.#newSession(visit, user.email, given.password);
  }

  /**
   * Signs in, and ends the oldest of more than 50 sessions of a user. A user with a second factor has no session before
   * `finishSignIn`. Rejects with `wrong_credentials`, and with `email_not_verified` when the password was right.
   */
  async signIn(
    visit: Visit,
    given: { readonly email: string; readonly password: string },
  ): Promise<SignInStep> {
    const { password } = given;
    const email = given.email.trim().toLowerCase();
    this.#attempts.ofAddress('sign_in', visit.client_address);
    return await this.#attempts.guess('password', email, () =>
      this.#queue.run(visit.client_address, () => this.#newSession(visit, email, password)),
    );
  }

  /**
   * Ends a sign-in that waits for its second factor, by a code of the app, or by a recovery code, which is used up.
   * Rejects with `wrong_code`, and with `second_factor_ended` after five wrong ones, ten minutes or a new password.
   */
  async finishSignIn(visit: Visit, { code }: { readonly code: string }): Promise<Cookies> {
    this.#attempts.ofAddress('sign_in', visit.client_address);
    const user_id = await userAwaitingSecondFactor(this.#auth, visit.headers, this.#parts.clock.now_ms());
    if (user_id === null) throw new SignInError('second_factor_ended');
    const hash = await this.#passwordHashOfUser(user_id);
    const { token, ...cookies } = await this.#attempts.guess('second_factor', user_id, () =>
      this.second_factors.proveAtSignIn(visit, user_id, code),
    );
    if ((await this.#passwordHashOfUser(user_id)) !== hash) {
      const { internalAdapter } = await this.#auth.$context;
      await internalAdapter.deleteSession(token);
      throw new SignInError('second_factor_ended');
    }
    await this.#tidyAfterSignIn(user_id);
    return cookies;
  }

  /** Ends the session of the request, if there is one; the cookies remove it from the browser. */
  async signOut(visit: Visit): Promise<Cookies> {
    const session = await this.#session(visit.headers, { disableRefresh: true });
    // If the deletion failed, better-auth would only log that, and remove the cookie.
    if (session !== null) await deleteOwn(this.#auth, session, 'session', session.session_id);
    const { headers } = await this.#auth.api.signOut({ headers: headersOf(visit), returnHeaders: true });
    return cookiesOf(headers);
  }

  /**
   * Returns the session of a request's cookies; null when there is none or it has ended. This extends it, in
   * the background where the database takes no writes at present. Creates the personal organization of a user
   * who has none.
   */
  async sessionOf(headers: Headers): Promise<SignedIn | null> {
    // A database that takes no writes can still read a session, but cannot note its use.
    const session = await this.#session(headers, { disableRefresh: true });
    if (session === null || !this.#isToBeExtended(session)) return session;
    const { session_id } = session;
    this.#extending.add(session_id);
    const extended = this.#session(headers, { disableRefresh: false }).finally(() =>
      this.#extending.delete(session_id),
    );
    try {
      return await inTime(extended, EXTENDING_MS, 'The session was not extended in time.');
    } catch {
      // Nothing is lost: the extension may still finish in the background, or the next request makes one.
      return session;
    }
  }

  /**
   * Returns true if a request has the cookie of a session, which may have ended since. Looks nothing up; such
   * a cookie cannot be made without the secret.
   */
  isCookieSigned(headers: Headers): Promise<boolean> {
    return isCookieSigned(this.#auth, headers);
  }

  /** Returns the user's active sessions, newest first. */
  async sessions({ user_id, session_id }: SignedIn): Promise<readonly OwnSession[]> {
    const { internalAdapter } = await this.#auth.$context;
    const sessions = await internalAdapter.listSessions(user_id, { onlyActiveSessions: true });
    return sessions
      .map((session) => ({
        id: session.id,
        is_current: session.id === session_id,
        user_agent: session.userAgent ?? '',
        client_address: session.ipAddress ?? '',
        created_at_ms: session.createdAt.getTime(),
        last_seen_at_ms: session.updatedAt.getTime(),
        expires_at_ms: session.expiresAt.getTime(),
      }))
      .sort((one, other) => other.created_at_ms - one.created_at_ms);
  }

  /** Ends a session of the user. Rejects with `not_found` (`AccountError`) for every other id. */
  async endSession(session: SignedIn, session_id: string): Promise<void> {
    if (!(await deleteOwn(this.#auth, session, 'session', session_id))) {
      throw new AccountError('not_found', 'There is no such session.');
    }
  }

  /** Ends all sessions of the user but this one. */
  async endOtherSessions({ user_id, session_id }: SignedIn): Promise<void> {
    const { adapter } = await this.#auth.$context;
    await adapter.deleteMany({
      model: 'session',
      where: [
        { field: 'userId', value: user_id },
        { field: 'id', value: session_id, operator: 'ne' },
      ],
    });
  }

  /**
   * Changes the password and ends all sessions; the cookies are those of a new one, with another CSRF token.
   * Rejects with `not_signed_in`, `wrong_password`, `password_too_short`, `password_too_long`,
   * `password_too_common`.
   */
  async changePassword(
    visit: Visit,
    given: { readonly current_password: string; readonly new_password: string },
  ): Promise<Cookies> {
    checkNewPassword(given.new_password);
    const session = await this.#requireSession(visit);
    return await this.#queue.run(visit.client_address, () => this.#changePassword(visit, session, given));
  }

  async #changePassword(
    visit: Visit,
    session: SignedIn,
    given: { readonly current_password: string; readonly new_password: string },
  ): Promise<Cookies> {
    const { adapter, password } = await this.#auth.$context;
    const { account_id, hash } = await this.#checkOwnPassword(session.user_id, given.current_password);
    const replaced = await adapter.updateMany({
      model: 'account',
      // A change with the password from before a reset must not overwrite the new one.
      where: [
        { field: 'id', value: account_id },
        { field: 'password', value: hash },
      ],
      update: { password: await password.hash(given.new_password) },
    });
    if (replaced === 0) throw new SignInError('wrong_password');
    await this.#endAccess(session.user_id);
    return await this.#newProvenSession(visit, session.user_id, given.new_password);
  }

  /**
   * Mails a link that sets a new password, if there is an account. Resolves before any lookup. Rejects with
   * `invalid_email`, `too_busy`.
   */
  requestReset({ client_address }: Visit, given: string): Promise<void> {
    return this.#mailAfterAnswer('reset_mails', client_address, given, async (email) => {
      const user = await this.#findUser(email);
      const link = await this.#resetLink(user?.id ?? null);
      if (user !== null) this.mail(resetMail(email, link));
    });
  }

  /**
   * Sets the password by the token of a reset link (`/console/reset#token=…`), once. Ends all sessions of the
   * user and verifies the address. It signs nobody in. Rejects with `link_ended`, `password_too_short`,
   * `password_too_long`, `password_too_common`.
   */
  async reset(
    visit: Visit,
    { token, new_password }: { readonly token: string; readonly new_password: string },
  ): Promise<void> {
    checkNewPassword(new_password);
    this.#attempts.ofAddress('link', visit.client_address);
    await this.#queue.run(visit.client_address, () =>
      told(this.#auth.api.resetPassword({ body: { token, newPassword: new_password } })),
    );
  }

  /**
   * Deletes the account of the request's session, with all its sessions; the cookies remove it from the
   * browser. Rejects with `not_signed_in`, `wrong_password`, and as the rule in `src/accounts/` does: the
   * last owner of an organization with credit stays.
   */
  async deleteAccount(visit: Visit, { password }: { readonly password: string }): Promise<Cookies> {
    const session = await this.#requireSession(visit);
    await this.#requirePassword(visit, session, password);
    await this.#parts.accounts.deleteAccount(session.user_id);
    // The rule has ended the sessions; this returns the cookies that remove them.
    return await this.signOut(visit);
  }

  /**
   * Counts a change against a user's limits for a minute and a day. Changes of accounts under 30 days of age
   * also count together by their sign-in address. Throws `too_many_attempts`.
   */
  countChange({
    user_id,
    created_at_ms,
    client_address,
  }: Pick<SignedIn, 'user_id' | 'created_at_ms' | 'client_address'>): void {
    this.#attempts.onAccount('changes', user_id);
    this.#attempts.onAccount('changes_of_day', user_id);
    const is_new = this.#parts.clock.now_ms() - created_at_ms < NEW_ACCOUNT_MS;
    if (is_new) this.#attempts.ofAddress('changes_of_new', client_address);
  }

  /** Counts a count of a request's tokens, which changes nothing. Throws `too_many_attempts`. */
  countTokenCount({ user_id }: Pick<SignedIn, 'user_id'>): void {
    this.#attempts.onAccount('token_counts', user_id);
  }

  /** Counts a request with rows of a batch, each of which is paid for. Throws `too_many_attempts`. */
  countBatch({ user_id }: Pick<SignedIn, 'user_id'>): void {
    this.#attempts.onAccount('batches', user_id);
  }

  /**
   * Counts a mail that invites an address: against its sender, and with all other invitations of that address.
   * Throws `invalid_email`, `too_many_attempts`.
   */
  countInvitation({ user_id }: Pick<SignedIn, 'user_id'>, given: string): void {
    const email = checkedEmail(given);
    this.#attempts.onAccount('invitations', user_id);
    this.#attempts.onAccount('invitation_mails', email);
  }

  /** Sends a mail in the background; a failure is reported. `close` waits for it. */
  mail(mail: Mail): void {
    this.#track(this.#parts.mailer.send(mail).catch((error: unknown) => this.#report('mail', error)));
  }

  /** Waits until all mails in progress are sent or have failed. */
  async close(): Promise<void> {
    while (this.#after_answers.size > 0) await Promise.all(this.#after_answers);
    this.#parts.mailer.close();
  }

  async #session(headers: Headers, query: { readonly disableRefresh: boolean }): Promise<SignedIn | null> {
    const found = await told(
      this.#auth.api.getSession({ headers: cookieHeader(headers), query, returnHeaders: true }),
    ).catch(nullIfNotSignedIn);
    if (found === null || found.response === null) return null;
    const { session, user } = found.response;
    if (!user.emailVerified) return null;
    await this.#parts.accounts.ensurePersonalOrganization(user.id);
    return {
      user_id: user.id,
      email: user.email,
      name: user.name,
      is_operator: user.isOperator,
      created_at_ms: user.createdAt.getTime(),
      client_address: session.ipAddress ?? '',
      session_id: session.id,
      csrf_token: createHmac('sha256', this.#parts.secret)
        .update(`csrf ${session.token}`)
        .digest('base64url'),
      expires_at_ms: session.expiresAt.getTime(),
      ...cookiesOf(found.headers),
    };
  }

  #isToBeExtended({ session_id, expires_at_ms }: SignedIn): boolean {
    const left_ms = expires_at_ms - this.#parts.clock.now_ms();
    return left_ms <= (SESSION_S - SESSION_UPDATE_S) * MS_PER_S && !this.#extending.has(session_id);
  }

  /** Returns the session for a change by better-auth, which treats one that cannot be extended as missing. */
  async #requireSession(visit: Visit): Promise<SignedIn> {
    const session = await this.#session(visit.headers, { disableRefresh: false });
    if (session === null) throw new SignInError('not_signed_in');
    return session;
  }

  /** Rejects with `wrong_password` unless it is the one of the session's user, and with `too_many_attempts`. */
  async #requirePassword(visit: Visit, session: SignedIn, password: string): Promise<void> {
    await this.#withPassword(visit, session, (headers) =>
      this.#auth.api.verifyPassword({ body: { password }, headers }),
    );
  }

  /** Does work for which better-auth checks the password of the session's user. Rejects as `#requirePassword`. */
  async #withPassword<T>(
    visit: Visit,
    { user_id }: SignedIn,
    work: (headers: Headers) => Promise<T>,
  ): Promise<T> {
    return await this.#attempts.guess('own_password', user_id, () =>
      this.#queue.run(visit.client_address, () => told(work(headersOf(visit)))),
    );
  }

  /** Returns where a user's password is stored, and its hash. Rejects as `#requirePassword`. */
  #checkOwnPassword(
    user_id: string,
    given: string,
  ): Promise<{ readonly account_id: string; readonly hash: string }> {
    return this.#attempts.guess('own_password', user_id, async () => {
      const { internalAdapter, password } = await this.#auth.$context;
      const account = await internalAdapter.findCredentialAccount(user_id);
      const hash = account?.password;
      if (!hash || !(await password.verify({ hash, password: given })))
        throw new SignInError('wrong_password');
      return { account_id: account.id, hash };
    });
  }

  /**
   * Returns the id of the user of an address whose mails this person reads, with that password from now on. An account
   * that nobody has proved to own is taken over, as by a reset. Rejects with `has_account`.
   */
  async #createProven(email: string, name: string, password: string): Promise<string> {
    const { internalAdapter } = await this.#auth.$context;
    if (await this.hasAccount(email)) throw new SignInError('has_account');
    const found = await this.#findUser(email);
    const { id } =
      found ??
      (await internalAdapter.createUser({ email, name, emailVerified: false }, { method: 'email-password' }));
    if (found !== null) await internalAdapter.updateUser(id, { name });
    const token = await this.#tokens.issue('reset-password', id);
    await told(this.#auth.api.resetPassword({ body: { token, newPassword: password } }));
    return id;
  }

  /** Does work for a requested mail to an address in the background, within the limits. */
  #mailAfterAnswer(
    mails: RequestedMails,
    client_address: string,
    given: string,
    work: (email: string) => Promise<void>,
  ): Promise<void> {
    return Promise.try(() => {
      const email = checkedEmail(given);
      this.#attempts.ofAddress('mail', client_address);
      this.#afterAnswer(mails, email, () => work(email));
    });
  }

  async #findUser(email: string): Promise<User | null> {
    const { internalAdapter } = await this.#auth.$context;
    return (await internalAdapter.findUserByEmail(email))?.user ?? null;
  }

  async #mailVerification({ id, email }: User): Promise<void> {
    const token = await this.#tokens.issue('verify-email', id);
    this.mail(verificationMail(email, this.#parts.links.verify(token)));
  }

  async #mailExisting({ id, email }: User): Promise<void> {
    const links = { sign_in: this.#parts.links.signIn(), reset: await this.#resetLink(id) };
    this.mail(existingAccountMail(email, links));
  }

  /** Returns a link that sets a new password; with null one that has no effect. */
  async #resetLink(user_id: string | null): Promise<string> {
    return this.#parts.links.reset(await this.#tokens.issue('reset-password', user_id));
  }

  /** Verifies the address: the user of the link reads its mails, or got the link from the operator. */
  async #afterReset({ id }: User): Promise<void> {
    const { internalAdapter } = await this.#auth.$context;
    await internalAdapter.updateUser(id, { emailVerified: true });
    await this.#endAccess(id);
  }

  /**
   * Ends the access by the old password: all sessions of the user, and links that would set another one. Call
   * it after the new password is written, because better-auth deletes sessions before that, while the old one
   * still works.
   */
  async #endAccess(user_id: string): Promise<void> {
    const { internalAdapter } = await this.#auth.$context;
    await internalAdapter.deleteUserSessions(user_id);
    await this.#tokens.endAll(user_id);
  }

  /**
   * Returns the cookies of a new session for the right password, or of a sign-in that waits for its second factor.
   * better-auth checks the password before it creates the session. If the password was replaced in between, the session
   * is deleted here, because `#endAccess` may have run already.
   */
  async #newSession(visit: Visit, email: string, password: string): Promise<SignInStep> {
    if (!isEmail(email)) throw new SignInError('wrong_credentials');
    const hash = await this.#passwordHashOf(email);
    const { headers, response } = await told(
      this.#auth.api.signInEmail({
        body: { email, password },
        headers: headersOf(visit),
        returnHeaders: true,
      }),
    );
    const token = 'twoFactorRedirect' in response ? null : response.token;
    if ((await this.#passwordHashOf(email)) !== hash) {
      const { internalAdapter } = await this.#auth.$context;
      // A sign-in that waits for its second factor ends with its cookie, which nobody gets.
      if (token !== null) await internalAdapter.deleteSession(token);
      throw new SignInError('wrong_credentials');
    }
    if ('twoFactorRedirect' in response) return { needs_second_factor: true, ...cookiesOf(headers) };
    await this.#tidyAfterSignIn(response.user.id);
    return { needs_second_factor: false, ...cookiesOf(headers) };
  }

  /** Returns the cookies of a new session of a user who was signed in, and has just set this password. */
  async #newProvenSession(visit: Visit, user_id: string, password: string): Promise<Cookies> {
    const { internalAdapter, password: hashing } = await this.#auth.$context;
    const { headers, response } = await this.#auth.api.beginProvenSession({
      query: { user_id },
      headers: headersOf(visit),
      returnHeaders: true,
    });
    const hash = await this.#passwordHashOfUser(user_id);
    if (hash === null || !(await hashing.verify({ hash, password }))) {
      await internalAdapter.deleteSession(response.token);
      throw new SignInError('wrong_credentials');
    }
    await this.#tidyAfterSignIn(user_id);
    return cookiesOf(headers);
  }

  async #tidyAfterSignIn(user_id: string): Promise<void> {
    await this.#parts.accounts.ensurePersonalOrganization(user_id);
    await this.#forgetEnded();
    await this.#endOldest(user_id);
  }

  /** Returns the stored hash of a password; makes the same two queries for an address without an account. */
  async #passwordHashOf(email: string): Promise<string | null> {
    const user = await this.#findUser(email);
    return await this.#passwordHashOfUser(user?.id ?? NOBODY);
  }

  async #passwordHashOfUser(user_id: string): Promise<string | null> {
    const { internalAdapter } = await this.#auth.$context;
    return (await internalAdapter.findCredentialAccount(user_id))?.password ?? null;
  }

  /** Deletes expired sessions and links, because no request does so. */
  async #forgetEnded(): Promise<void> {
    const { adapter } = await this.#auth.$context;
    const now = new Date(this.#parts.clock.now_ms());
    await adapter.deleteMany({
      model: 'session',
      where: [{ field: 'expiresAt', value: now, operator: 'lt' }],
    });
    await this.#tokens.endExpired();
  }

  /** Ends the oldest sessions of a user who has too many. */
  async #endOldest(user_id: string): Promise<void> {
    const { adapter } = await this.#auth.$context;
    const oldest = await adapter.findMany<{ readonly id: string }>({
      model: 'session',
      where: [{ field: 'userId', value: user_id }],
      sortBy: { field: 'createdAt', direction: 'desc' },
      offset: SESSIONS_MAX,
      limit: SESSIONS_MAX,
    });
    for (const { id } of oldest) {
      await adapter.deleteMany({ model: 'session', where: [{ field: 'id', value: id }] });
    }
  }

  /**
   * Does work that may mail an address after the response, so that the response's time does not reveal the
   * existence of an account. Throws `too_busy` when too much is running, and `too_many_attempts`.
   */
  #afterAnswer(mails: RequestedMails, email: string, work: () => Promise<void>): void {
    if (this.#after_answers.size >= AFTER_ANSWERS_MAX) throw new SignInError('too_busy', BUSY_RETRY_S);
    // Last: a request that is refused for lack of room sends no link, and must not spend one.
    this.#attempts.onAccount(mails, email);
    this.#track(
      new Promise<void>((resolve) => setImmediate(resolve))
        .then(work)
        .catch((error: unknown) => this.#report('sign_in', error)),
    );
  }

  #track(work: Promise<void>): void {
    this.#after_answers.add(work);
    void work.finally(() => this.#after_answers.delete(work));
  }

  #report(step: 'sign_in' | 'mail', error: unknown): void {
    this.#parts.problems.report(inBackground(step, error));
  }
}
