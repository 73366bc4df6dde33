import { APIError } from 'better-auth/api';
import type { SignInErrorCode } from '../../errors/errors.ts';
import { ADDRESS_HEADER, type BetterAuth } from './better-auth.ts';
import type { Cookies, SignedIn, Visit } from './sign-in.ts';
import { SignInError } from './sign-in-error.ts';

const USER_AGENT_LENGTH_MAX = 300;

/** Returns the few headers of a request that better-auth needs. */
export function headersOf({ headers, client_address }: Visit): Headers {
  const needed = cookieHeader(headers);
  needed.set(ADDRESS_HEADER, client_address);
  const user_agent = headers.get('user-agent');
  if (user_agent !== null) needed.set('user-agent', user_agent.slice(0, USER_AGENT_LENGTH_MAX));
  return needed;
}

export function cookieHeader(headers: Headers): Headers {
  return new Headers({ cookie: headers.get('cookie') ?? '' });
}

export function cookiesOf(headers: Headers): Cookies {
  return { set_cookies: headers.getSetCookie() };
}

/** Deletes a session or a passkey of a user. Returns false if they have none with that id. */
export async function deleteOwn(
  auth: BetterAuth,
  { user_id }: Pick<SignedIn, 'user_id'>,
  model: 'session' | 'passkey',
  id: string,
): Promise<boolean> {
  const { adapter } = await auth.$context;
  const where = [
    { field: 'id', value: id },
    { field: 'userId', value: user_id },
  ];
  return (await adapter.deleteMany({ model, where })) > 0;
}

/** The refusals of better-auth, as our codes. */
const REFUSALS: Readonly<Record<string, SignInErrorCode>> = {
  INVALID_EMAIL: 'wrong_credentials',
  INVALID_EMAIL_OR_PASSWORD: 'wrong_credentials',
  PASSWORD_TOO_LONG: 'wrong_credentials',
  EMAIL_NOT_VERIFIED: 'email_not_verified',
  INVALID_PASSWORD: 'wrong_password',
  INVALID_TOKEN: 'link_ended',
  USER_NOT_FOUND: 'link_ended',
  UNAUTHORIZED: 'not_signed_in',
  INVALID_CODE: 'wrong_code',
  INVALID_BACKUP_CODE: 'wrong_code',
  INVALID_TWO_FACTOR_COOKIE: 'second_factor_ended',
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: 'second_factor_ended',
  TOTP_NOT_ENABLED: 'second_factor_ended',
  BACKUP_CODES_NOT_ENABLED: 'second_factor_ended',
  TWO_FACTOR_NOT_ENABLED: 'no_second_factor',
  TOTP_ALREADY_ENABLED: 'second_factor_exists',
  ACCOUNT_TEMPORARILY_LOCKED: 'too_many_attempts',
  CHALLENGE_NOT_FOUND: 'passkey_ended',
  YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY: 'passkey_ended',
  PASSKEY_NOT_FOUND: 'wrong_passkey',
  AUTHENTICATION_FAILED: 'wrong_passkey',
  FAILED_TO_VERIFY_REGISTRATION: 'wrong_passkey',
  PASSKEY_EXISTS: 'passkey_exists',
};

/** The time for which better-auth takes no second factor of an account after ten wrong ones. */
const LOCKED_S = 900;

/**
 * The refusals without a code of their own, by status. Another request ended the session that this one extends, or another
 * sign-in used up a recovery code meanwhile.
 */
const REFUSALS_BY_STATUS: Readonly<Record<number, SignInErrorCode>> = {
  401: 'not_signed_in',
  409: 'second_factor_ended',
};

/** Returns the result; throws better-auth's refusal as a `SignInError`. */
export async function told<Result>(result: Promise<Result>): Promise<Result> {
  try {
    return await result;
  } catch (error) {
    const code = error instanceof APIError ? refusalOf(error) : undefined;
    if (code === undefined) throw error;
    throw new SignInError(code, code === 'too_many_attempts' ? LOCKED_S : null);
  }
}

function refusalOf({ body, statusCode }: APIError): SignInErrorCode | undefined {
  return REFUSALS[String(body?.code)] ?? REFUSALS_BY_STATUS[statusCode];
}

export function nullIfNotSignedIn(error: unknown): null {
  if (error instanceof SignInError && error.code === 'not_signed_in') return null;
  throw error;
}
