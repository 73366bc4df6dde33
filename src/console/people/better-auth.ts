import type { DBAdapterInstance, User } from 'better-auth';
import { parseCookies } from 'better-auth/cookies';
import { constantTimeEqual, makeSignature } from 'better-auth/crypto';
import { betterAuth } from 'better-auth/minimal';
import type { Identifiers, IdKind } from '../../identifiers.ts';
import { withHashedTokens } from './hashed-tokens.ts';
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from './password-rules.ts';

/** The time after its last use at which a session ends. */
export const SESSION_S = 14 * 24 * 3_600;
/** The shortest interval between two extensions of a session in use. */
export const SESSION_UPDATE_S = 300;

/** The path of cookies, so that no request of the API has them. */
const COOKIE_PATH = '/console';

/** The header with the client's address for better-auth; a client's own header does not count. */
export const ADDRESS_HEADER = 'x-tds-client-address';

const ID_KINDS: Readonly<Record<string, IdKind>> = {
  user: 'user',
  session: 'session',
  account: 'sign_in_account',
  verification: 'verification',
};

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

/**
 * Opens better-auth, without routes of its own: email and password only, sessions in the database, no
 * telemetry. `attempts.ts` has the rate limits. Links are our own, because better-auth's verification links
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
      log: (_level, message, ...details) =>
        parts.onFailure(details.find((detail) => detail instanceof Error) ?? new Error(message)),
    },
    user: {
      additionalFields: {
        isOperator: { type: 'boolean', required: true, defaultValue: false, input: false },
      },
    },
    session: { expiresIn: SESSION_S, updateAge: SESSION_UPDATE_S },
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
      cookiePrefix: 'tds',
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
  const cookie = parseCookies(headers.get('cookie') ?? '').get(authCookies.sessionToken.name) ?? '';
  const token_end = cookie.lastIndexOf('.');
  if (token_end < 1) return false;
  return constantTimeEqual(
    cookie.slice(token_end + 1),
    await makeSignature(cookie.slice(0, token_end), secret),
  );
}
