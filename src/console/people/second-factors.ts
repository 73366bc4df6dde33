import type { SecondFactorAction } from '../../accounts/second-factors.ts';
import type { Attempts } from './attempts.ts';
import { cookiesOf, headersOf, told } from './auth-calls.ts';
import { type BetterAuth, withoutSession } from './better-auth.ts';
import type { Cookies, SecondFactor, SignedIn, Visit } from './sign-in.ts';
import { SignInError } from './sign-in-error.ts';

/** The code of an app; every other text is taken for a recovery code. */
const APP_CODE = /^\d{6}$/;

/** A code is valid for 90 seconds: in its half minute, and in those before and after it. */
const CODE_KEPT_MS = 120_000;

/** The parts of sign-in that second factors need. */
export interface SecondFactorParts {
  readonly auth: BetterAuth;
  readonly attempts: Attempts;
  readonly now_ms: () => number;
  readonly accounts: {
    noteSecondFactor(user_id: string, action: SecondFactorAction): Promise<void>;
  };
  readonly requireSession: (visit: Visit) => Promise<SignedIn>;
  /** Returns the stored hash of a user's password; null for none. */
  readonly passwordHashOf: (user_id: string) => Promise<string | null>;
  /** Does work for which better-auth checks the password. Rejects with `wrong_password` and `too_many_attempts`. */
  readonly withPassword: <T>(
    visit: Visit,
    session: SignedIn,
    work: (headers: Headers) => Promise<T>,
  ) => Promise<T>;
}

/**
 * The second factor of the user of a request's session, by better-auth's plugin: codes of authenticator apps (TOTP) and
 * recovery codes. Every method with a password rejects with `not_signed_in`, `wrong_password`, and `too_many_attempts`.
 */
export class SecondFactors {
  constructor(private readonly parts: SecondFactorParts) {}

  async statusOf({ user_id }: Pick<SignedIn, 'user_id'>): Promise<SecondFactor> {
    const is_on = await this.#isOn(user_id);
    if (!is_on) return { is_on, recovery_codes_left: 0 };
    const { backupCodes } = await this.parts.auth.api.viewBackupCodes({ body: { userId: user_id } });
    return { is_on, recovery_codes_left: backupCodes.length };
  }

  /**
   * Returns the address that gives an app its secret, as a QR code does, and ten recovery codes. Sign-in needs no code
   * before `confirm`. Rejects with `second_factor_exists`.
   */
  async begin(
    visit: Visit,
    { password }: { readonly password: string },
  ): Promise<{ readonly app_url: string; readonly recovery_codes: readonly string[] }> {
    const { auth, requireSession, withPassword } = this.parts;
    const begun = await withPassword(visit, await requireSession(visit), (headers) =>
      auth.api.enableTwoFactor({ body: { password, method: 'totp' }, headers }),
    );
    if (begun.method !== 'totp') throw new Error('better-auth has begun another second factor');
    return { app_url: begun.totpURI, recovery_codes: begun.backupCodes };
  }

  /**
   * Turns the second factor on by a first code of the app. The cookies are those of a new session. Rejects with
   * `not_signed_in`, `wrong_code`, `second_factor_exists`, `second_factor_ended`, `too_many_attempts`.
   */
  async confirm(visit: Visit, { code }: { readonly code: string }): Promise<Cookies> {
    const { auth, attempts, accounts, requireSession } = this.parts;
    const { user_id } = await requireSession(visit);
    // better-auth would check the code of a factor that is on, for whoever has the session.
    if (await this.#isOn(user_id)) throw new SignInError('second_factor_exists');
    const given = { body: { code: plain(code) }, headers: headersOf(visit), returnHeaders: true } as const;
    const { headers } = await this.#withNewSession(user_id, async () => {
      const verified = await attempts.guess('second_factor', user_id, () => told(auth.api.verifyTOTP(given)));
      await accounts.noteSecondFactor(user_id, 'second_factor.add');
      return verified;
    });
    return cookiesOf(headers);
  }

  /** Returns ten new recovery codes, and ends the old ones. Rejects with `no_second_factor`. */
  async renewRecoveryCodes(
    visit: Visit,
    { password }: { readonly password: string },
  ): Promise<readonly string[]> {
    const { auth, accounts, requireSession, withPassword } = this.parts;
    const session = await requireSession(visit);
    const { backupCodes } = await withPassword(visit, session, (headers) =>
      auth.api.generateBackupCodes({ body: { password }, headers }),
    );
    await accounts.noteSecondFactor(session.user_id, 'second_factor.recovery_codes');
    return backupCodes;
  }

  /** Turns the second factor off. The cookies are those of a new session. */
  async remove(visit: Visit, { password }: { readonly password: string }): Promise<Cookies> {
    const { auth, accounts, requireSession, withPassword } = this.parts;
    const session = await requireSession(visit);
    const { headers: sent } = await this.#withNewSession(session.user_id, async () => {
      const disabled = await withPassword(visit, session, (headers) =>
        auth.api.disableTwoFactor({ body: { password }, headers, returnHeaders: true }),
      );
      await accounts.noteSecondFactor(session.user_id, 'second_factor.remove');
      return disabled;
    });
    return cookiesOf(sent);
  }

  /**
   * Checks the code of a sign-in whose password was right. Returns the cookies and the token of its new session. Rejects
   * with `wrong_code`, `second_factor_ended`, `too_many_attempts`.
   */
  async proveAtSignIn(
    visit: Visit,
    user_id: string,
    code: string,
  ): Promise<Cookies & { readonly token: string }> {
    const { auth } = this.parts;
    const { api } = auth;
    const sent = plain(code);
    const headers_sent = await withoutSession(auth, headersOf(visit));
    const given = { body: { code: sent }, headers: headers_sent, returnHeaders: true } as const;
    const is_app_code = APP_CODE.test(sent);
    if (is_app_code && (await this.#isUsed(user_id, sent))) throw new SignInError('wrong_code');
    const { headers, response } = await told(
      is_app_code ? api.verifyTOTP(given) : api.verifyBackupCode(given),
    );
    if (response.token === undefined) throw new Error('better-auth has begun no session');
    if (!is_app_code) await this.parts.accounts.noteSecondFactor(user_id, 'second_factor.recover');
    else if (!(await this.#useUp(user_id, sent))) {
      await (await auth.$context).internalAdapter.deleteSession(response.token);
      throw new SignInError('second_factor_ended');
    }
    return { token: response.token, ...cookiesOf(headers) };
  }

  /**
   * Does work in which better-auth begins another session in place of the request's. Where the password was replaced
   * meanwhile, the other sessions may have ended before that one began: ends all, and rejects with `not_signed_in`. The
   * work stays done, so that it notes itself.
   */
  async #withNewSession<T>(user_id: string, work: () => Promise<T>): Promise<T> {
    const { auth, passwordHashOf } = this.parts;
    const hash = await passwordHashOf(user_id);
    const done = await work();
    if ((await passwordHashOf(user_id)) === hash) return done;
    await (await auth.$context).internalAdapter.deleteUserSessions(user_id);
    throw new SignInError('not_signed_in');
  }

  async #isOn(user_id: string): Promise<boolean> {
    const { internalAdapter } = await this.parts.auth.$context;
    const user = await internalAdapter.findUserById(user_id);
    return user !== null && 'twoFactorEnabled' in user && user.twoFactorEnabled === true;
  }

  /** Returns true if the code began a session of this user in the last two minutes. */
  async #isUsed(user_id: string, code: string): Promise<boolean> {
    const { internalAdapter } = await this.parts.auth.$context;
    return (await internalAdapter.findVerificationValue(usedCode(user_id, code))) !== null;
  }

  /**
   * Notes that the code began a session, because better-auth takes it again while it is valid. Returns false if another
   * sign-in noted it first (RFC 6238 section 5.2).
   */
  async #useUp(user_id: string, code: string): Promise<boolean> {
    const { internalAdapter } = await this.parts.auth.$context;
    return await internalAdapter.reserveVerificationValue({
      identifier: usedCode(user_id, code),
      value: user_id,
      expiresAt: new Date(this.parts.now_ms() + CODE_KEPT_MS),
    });
  }
}

/** Returns a code without the spaces with which apps show it. */
function plain(code: string): string {
  return code.replaceAll(/\s/g, '');
}

/** Returns the name of the row that says of a user's code that it was used. The database gets its hash. */
function usedCode(user_id: string, code: string): string {
  return `second-factor-code:${user_id}:${code}`;
}
