import type { BetterAuthPlugin, DBAdapterInstance, User } from 'better-auth';
import { createAuthEndpoint } from 'better-auth/api';
import { parseCookies, setSessionCookie } from 'better-auth/cookies';
import { constantTimeEqual, makeSignature } from 'better-auth/crypto';
import { betterAuth } from 'better-auth/minimal';
import { twoFactor } from 'better-auth/plugins/two-factor';
import type { Identifiers, IdKind } from '../../contract/identifiers.ts';
import { withHashedTokens } from './hashed-tokens.ts';
import { keepFailure, PASSKEY_USES, passkeyPlugin } from './passkey-plugin.ts';
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from './password-rules.ts';
import type { RelyingParty } from './relying-party.ts';

/** The time after its last use at which a session ends. */
export const SESSION_S = 14 * 24 * 3_600;
/** The shortest interval between two extensions of a session in use. */
export const SESSION_UPDATE_S = 300;

/** The path of cookies, so that no request of the API has them. */
const COOKIE_PATH = '/console';

/** The names of all cookies begin with it, and a dot. */
export const COOKIE_PREFIX = 'tds';

/** The header with the client's address for better-auth; a client's own header does not count. */
export const ADDRESS_HEADER = 'x-tds-client-address';

const ID_KINDS: Readonly<Record<string, IdKind>> = {
  user: 'user',
  session: 'session',
  account: 'sign_in_account',
  verification: 'verification',
  twoFactor: 'second_factor',
  passkey: 'passkey',
};

/** The seconds in which a sign-in with the right password waits for its second factor. */
const SECOND_FACTOR_S = 600;
/** The name in authenticators. */
const ISSUER = 'Typed Decision Service';
/** better-auth's name of the cookie of a sign-in that waits for its second factor. */
const SECOND_FACTOR_COOKIE = 'two_factor';

/** The hashing of passwords; better-auth's own (scrypt) by default. */
export interface PasswordHashing {
  hash(password: string): Promise<string>;
  verify(given: { readonly hash: string; readonly password: string }): Promise<boolean>;
}

export interface BetterAuthParts {
  readonly database: DBAdapterInstance;
  readonly secret: string;
  /** True if the console is reached by https; then cookies are sent only by https. */
  readonly is_https: boolean;
  /** The owner of passkeys; null for that of this machine, `localhost`. */
  readonly relying_party: RelyingParty | null;
  readonly identifiers: Pick<Identifiers, 'id'>;
  readonly passwords?: PasswordHashing | undefined;
  /** Reports failures that better-auth does not pass on. */
  readonly onFailure: (error: unknown) => void;
  /** Called with the user that a sign-up created. */
  readonly onSignUp: (user: User) => Promise<void>;
  /** Called with the user whose address somebody signed up with again. */
  readonly onTakenSignUp: (user: User) => Promise<void>;
  /** Called with the user whose password was set by a link. */
  readonly onReset: (user: User) => Promise<void>;
}

export type BetterAuth = ReturnType<typeof openBetterAuth>;

/** Begins a session of a user who has proved before who they are. better-auth itself would ask for a second factor again. */
const PROVEN_SESSIONS = {
  id: 'proven-sessions',
  endpoints: {
    beginProvenSession: createAuthEndpoint.serverOnly({ method: 'GET' }, async (context) => {
      const { internalAdapter } = context.context;
      const user = await internalAdapter.findUserById(String(context.query?.user_id));
      if (user === null) throw new Error('there is no such user');
      const session = await internalAdapter.createSession(user.id);
      await setSessionCookie(context, { session, user });
      return { token: session.token };
    }),
  },
} satisfies BetterAuthPlugin;

/**
 * Opens better-auth, without routes of its own and without telemetry: email and password, second factors, passkeys, and
 * sessions in the database. `attempts.ts` has the rate limits. Links are our own, because better-auth's verification links
 * can be used again.
 */
export function openBetterAuth(parts: BetterAuthParts) {
  const { identifiers, passwords } = parts;
  return betterAuth({
    // The address is not used, but without it better-auth would look for one in the environment.
    baseURL: parts.is_https ? 'https://localhost' : 'http://localhost',
    secrets: [{ version: 1, value: parts.secret }],
    database: (options) => withHashedTokens(parts.database(options)),
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    logger: {
      level: 'error',
      // The message may quote an address, so an error in the details is preferred.
      log: (_level, message, ...details) => {
        const failure = details.find((detail) => detail instanceof Error) ?? new Error(message);
        if (!keepFailure(failure)) parts.onFailure(failure);
      },
    },
    user: {
      additionalFields: {
        isOperator: { type: 'boolean', required: true, defaultValue: false, input: false },
      },
    },
    plugins: [
      twoFactor({ issuer: ISSUER, twoFactorCookieMaxAge: SECOND_FACTOR_S }),
      passkeyPlugin(parts.relying_party, ISSUER),
      PASSKEY_USES,
      PROVEN_SESSIONS,
    ],
    // Sensitive changes ask for the password, whatever the age of the session.
    session: { expiresIn: SESSION_S, updateAge: SESSION_UPDATE_S, freshAge: 0 },
    verification: { storeIdentifier: 'hashed' },
    emailAndPassword: {
      enabled: true,
      requireEmailVerification: true,
      autoSignIn: false,
      minPasswordLength: PASSWORD_LENGTH_MIN,
      maxPasswordLength: PASSWORD_LENGTH_MAX,
      revokeSessionsOnPasswordReset: true,
      onExistingUserSignUp: ({ user }) => parts.onTakenSignUp(user),
      onPasswordReset: ({ user }) => parts.onReset(user),
      ...(passwords === undefined ? {} : { password: passwords }),
    },
    emailVerification: {
      sendOnSignUp: true,
      sendVerificationEmail: ({ user }) => parts.onSignUp(user),
    },
    databaseHooks: {
      session: {
        create: {
          before: async (session, context) => ({
            data: { ...session, ipAddress: context?.headers?.get(ADDRESS_HEADER) ?? '' },
          }),
        },
      },
    },
    advanced: {
      cookiePrefix: COOKIE_PREFIX,
      useSecureCookies: parts.is_https,
      defaultCookieAttributes: { path: COOKIE_PATH, httpOnly: true, sameSite: 'lax' },
      ipAddress: { disableIpTracking: true },
      database: {
        generateId: ({ model }) => {
          const kind = ID_KINDS[model];
          if (kind === undefined) throw new Error(`${model} has no kind of id`);
          return identifiers.id(kind);
        },
      },
    },
  });
}

/**
 * Returns true if headers have a session cookie with better-auth's signature, without looking up the session.
 */
export async function isCookieSigned({ $context }: BetterAuth, headers: Headers): Promise<boolean> {
  const { authCookies, secret } = await $context;
  return (await signedValue(headers, authCookies.sessionToken.name, secret)) !== null;
}

/**
 * Returns the id of the user whose sign-in waits for its second factor. Returns null where the headers have no signed
 * cookie of such a sign-in, or it has ended.
 */
export async function userAwaitingSecondFactor(
  { $context }: BetterAuth,
  headers: Headers,
  now_ms: number,
): Promise<string | null> {
  const { createAuthCookie, internalAdapter, secret } = await $context;
  const token = await signedValue(headers, createAuthCookie(SECOND_FACTOR_COOKIE).name, secret);
  if (token === null) return null;
  const found = await internalAdapter.findVerificationValue(token);
  return found === null || found.expiresAt.getTime() <= now_ms ? null : found.value;
}

/**
 * Returns headers whose only cookie is that of a sign-in that waits for its second factor. better-auth would prefer a
 * session, which may be another account's.
 */
export async function withoutSession({ $context }: BetterAuth, headers: Headers): Promise<Headers> {
  const { name } = (await $context).createAuthCookie(SECOND_FACTOR_COOKIE);
  // A request may have cookies of two accounts. This must be the one that `userAwaitingSecondFactor` reads.
  const value = parseCookies(headers.get('cookie') ?? '').get(name);
  const kept = new Headers(headers);
  kept.set('cookie', value === undefined ? '' : `${name}=${encodeURIComponent(value)}`);
  return kept;
}

/** Returns the value of a signed cookie; null without one, or with a wrong signature. */
async function signedValue(headers: Headers, name: string, secret: string): Promise<string | null> {
  const cookie = parseCookies(headers.get('cookie') ?? '').get(name) ?? '';
  const value_end = cookie.lastIndexOf('.');
  if (value_end < 1) return null;
  const value = cookie.slice(0, value_end);
  const is_signed = constantTimeEqual(cookie.slice(value_end + 1), await makeSignature(value, secret));
  return is_signed ? value : null;
}
