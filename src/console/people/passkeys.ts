import { AccountError } from '../../access/account-error.ts';
import { checkedName } from '../../accounts/names.ts';
import type { PasskeyAction } from '../../accounts/passkeys.ts';
import type { Clock } from '../../time/clock.ts';
import type { Attempts } from './attempts.ts';
import { cookiesOf, deleteOwn, headersOf, told } from './auth-calls.ts';
import type { BetterAuth } from './better-auth.ts';
import { checked } from './passkey-plugin.ts';
import type { RelyingParties, RelyingParty } from './relying-party.ts';
import type {
  Cookies,
  NewPasskey,
  Passkey,
  PasskeyAnswer,
  PasskeyQuestion,
  PasskeyRequest,
  SignedIn,
  Visit,
} from './sign-in.ts';
import { SignInError } from './sign-in-error.ts';

/** The most passkeys of a user. */
export const PASSKEYS_MAX = 20;

/** A stored passkey, as better-auth has it. */
interface StoredPasskey {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}

/** The parts of sign-in that passkeys need. */
export interface PasskeyParts {
  readonly auth: BetterAuth;
  readonly attempts: Attempts;
  readonly parties: RelyingParties;
  readonly clock: Pick<Clock, 'now_ms'>;
  readonly accounts: {
    notePasskey(user_id: string, action: PasskeyAction, passkey_id: string): Promise<void>;
  };
  readonly requireSession: (visit: Visit) => Promise<SignedIn>;
  /** Rejects with `wrong_password` unless it is the one of the signed-in user. */
  readonly requirePassword: (visit: Visit, session: SignedIn, password: string) => Promise<void>;
  /** Deletes expired questions. */
  readonly endExpired: () => Promise<void>;
  readonly endOtherSessions: (session: SignedIn) => Promise<void>;
  /** Does what follows every sign-in of a user. */
  readonly afterSignIn: (user_id: string) => Promise<void>;
}

/**
 * Passkeys (WebAuthn), by better-auth's plugin. Each is both steps of sign-in: its authenticator asks for a PIN, a
 * finger or a face. Where they are not offered, every method with a visit but `remove` rejects with `no_passkeys_here`.
 */
export class Passkeys {
  constructor(private readonly parts: PasskeyParts) {}

  /** Returns true if the page of a request can use passkeys. */
  isOffered(headers: Headers): boolean {
    return this.parts.parties.isOffered(headers);
  }

  /** Returns the passkeys of a user, oldest first. */
  async list({ user_id }: Pick<SignedIn, 'user_id'>): Promise<readonly Passkey[]> {
    const { adapter } = await this.parts.auth.$context;
    const found = await adapter.findMany<StoredPasskey>({
      model: 'passkey',
      where: [{ field: 'userId', value: user_id }],
      sortBy: { field: 'createdAt', direction: 'asc' },
    });
    return found.map(({ id, name, createdAt, lastUsedAt }) => ({
      id,
      name,
      created_at_ms: createdAt.getTime(),
      last_used_at_ms: lastUsedAt?.getTime() ?? null,
    }));
  }

  /**
   * Begins to add a passkey, which must be there in five minutes. Rejects with `not_signed_in`, `wrong_password`,
   * `too_many_passkeys`, `too_many_attempts`.
   */
  async begin(visit: Visit, { password }: { readonly password: string }): Promise<PasskeyRequest & Cookies> {
    const { auth, requireSession, requirePassword } = this.parts;
    const headers = this.#headersAt(this.#requireParty(visit), visit);
    const session = await requireSession(visit);
    await requirePassword(visit, session, password);
    await this.#requireRoom(session);
    const { headers: sent, response } = await told(
      auth.api.generatePasskeyRegistrationOptions({ headers, returnHeaders: true }),
    );
    return {
      ...cookiesOf(sent),
      challenge: response.challenge,
      domain: response.rp.id ?? '',
      service_name: response.rp.name,
      user_handle: response.user.id,
      user_name: response.user.name,
      algorithms: response.pubKeyCredParams.map(({ alg }) => alg),
      known_ids: (response.excludeCredentials ?? []).map(({ id }) => id),
    };
  }

  /**
   * Adds the passkey that was begun in this session. Rejects with `not_signed_in`, `passkey_ended`, `wrong_passkey`,
   * `passkey_exists`, `invalid_name`.
   */
  async add(visit: Visit, { name, ...given }: NewPasskey): Promise<Cookies> {
    const { auth, accounts, requireSession } = this.parts;
    const headers = this.#headersAt(this.#requireParty(visit), visit);
    const session = await requireSession(visit);
    // Several may have begun while there was room for one.
    await this.#requireRoom(session);
    const { id, client_data, attestation, transports } = given;
    const response = {
      id,
      rawId: id,
      type: 'public-key' as const,
      response: {
        clientDataJSON: client_data,
        attestationObject: attestation,
        transports: transports === '' ? [] : transports.split(','),
      },
      clientExtensionResults: {},
    };
    const body = name.trim() === '' ? { response } : { response, name: checkedName(name) };
    const { headers: sent, response: added } = await checked(() =>
      told(auth.api.verifyPasskeyRegistration({ body, headers, returnHeaders: true })),
    );
    try {
      // The session, or the user, may have ended since: then nothing of it may sign in later.
      await requireSession(visit);
    } catch (error) {
      await deleteOwn(this.parts.auth, session, 'passkey', added.id);
      throw error;
    }
    await accounts.notePasskey(session.user_id, 'passkey.add', added.id);
    return cookiesOf(sent);
  }

  /**
   * Removes a passkey of the signed-in user, and ends the user's other sessions, which it may have begun. Rejects with
   * `not_signed_in`, `wrong_password`, `too_many_attempts`, and `not_found` (`AccountError`).
   */
  async remove(
    visit: Visit,
    { passkey_id, password }: { readonly passkey_id: string; readonly password: string },
  ): Promise<void> {
    const { accounts, requireSession, requirePassword, endOtherSessions } = this.parts;
    const session = await requireSession(visit);
    await requirePassword(visit, session, password);
    if (!(await deleteOwn(this.parts.auth, session, 'passkey', passkey_id))) {
      throw new AccountError('not_found', 'There is no such passkey.');
    }
    // After the deletion: a sign-in that still found the passkey looks for it again.
    await endOtherSessions(session);
    await accounts.notePasskey(session.user_id, 'passkey.remove', passkey_id);
  }

  /** Begins a sign-in, for five minutes; it is the same for everybody. Rejects with `too_many_attempts`. */
  async ask(visit: Visit): Promise<PasskeyQuestion & Cookies> {
    const { auth, attempts } = this.parts;
    const { domain } = this.#requireParty(visit);
    attempts.ofAddress('passkey', visit.client_address);
    // Each question is a row for some minutes.
    await this.parts.endExpired();
    // No cookie is given: with a session, the question would name the passkeys of its user.
    const { headers, response } = await told(
      auth.api.generatePasskeyAuthenticationOptions({ headers: new Headers(), returnHeaders: true }),
    );
    return { ...cookiesOf(headers), challenge: response.challenge, domain };
  }

  /** Signs in by the answer to the question, which is used up. Rejects with `passkey_ended`, `wrong_passkey`. */
  async signIn(visit: Visit, given: PasskeyAnswer): Promise<Cookies> {
    const { auth, attempts, clock, afterSignIn } = this.parts;
    const headers = this.#headersAt(this.#requireParty(visit), visit);
    attempts.ofAddress('passkey', visit.client_address);
    const { id, client_data, authenticator_data, signature } = given;
    const response = {
      id,
      rawId: id,
      type: 'public-key' as const,
      response: { clientDataJSON: client_data, authenticatorData: authenticator_data, signature },
      clientExtensionResults: {},
    };
    const { headers: sent, response: begun } = await checked(() =>
      told(auth.api.verifyPasskeyAuthentication({ body: { response }, headers, returnHeaders: true })),
    );
    const { adapter, internalAdapter } = await auth.$context;
    const used = await adapter.update({
      model: 'passkey',
      where: [{ field: 'credentialID', value: id }],
      update: { lastUsedAt: new Date(clock.now_ms()) },
    });
    if (used === null) {
      await internalAdapter.deleteSession(begun.session.token);
      throw new SignInError('wrong_passkey');
    }
    await afterSignIn(begun.user.id);
    return cookiesOf(sent);
  }

  /** Throws `too_many_passkeys`. */
  async #requireRoom(session: SignedIn): Promise<void> {
    if ((await this.list(session)).length >= PASSKEYS_MAX) throw new SignInError('too_many_passkeys');
  }

  /** Returns the party of a request. Throws `no_passkeys_here`. */
  #requireParty({ headers }: Visit): RelyingParty {
    const party = this.parts.parties.of(headers);
    if (party === null) throw new SignInError('no_passkeys_here');
    return party;
  }

  /** Returns the headers of a request with the origin that an authenticator must have signed. */
  #headersAt({ origin }: RelyingParty, visit: Visit): Headers {
    const headers = headersOf(visit);
    headers.set('origin', origin);
    return headers;
  }
}
