import { AsyncLocalStorage } from 'node:async_hooks';
import { getAuthenticatorName, passkey } from '@better-auth/passkey';
import type { BetterAuthPlugin } from 'better-auth';
import { APIError } from 'better-auth/api';
import { LOCAL_DOMAIN, type RelyingParty } from './relying-party.ts';
import { SignInError } from './sign-in-error.ts';

/** The name of a passkey whose owner gave none, and whose authenticator is of no known model. */
const UNNAMED = 'Passkey';

/** The check of one answer of an authenticator. */
interface Check {
  /** True once the answer has proved right; every later failure is our own. */
  is_right: boolean;
  failure: unknown;
}

const checks = new AsyncLocalStorage<Check>();

/**
 * Does work that checks the answer of an authenticator. The plugin reports a refusal and a failure of ours alike. A
 * wrong answer rejects with `wrong_passkey`, and one to no question with `passkey_ended`. A failure after a right answer
 * rejects as it did.
 */
export function checked<T>(work: () => Promise<T>): Promise<T> {
  const check: Check = { is_right: false, failure: undefined };
  return checks.run(check, async () => {
    try {
      return await work();
    } catch (error) {
      if (check.failure !== undefined) {
        throw check.is_right ? check.failure : new SignInError('wrong_passkey');
      }
      // A cookie's signature holds for any name, so this may be the row of a waiting sign-in. Only the row of a question
      // is JSON.
      throw error instanceof SyntaxError && !check.is_right ? new SignInError('passkey_ended') : error;
    }
  });
}

/** Keeps a failure for `checked`. Returns false where none is being checked, so that it must be reported. */
export function keepFailure(failure: unknown): boolean {
  const check = checks.getStore();
  if (check !== undefined) check.failure = failure;
  return check !== undefined;
}

/** Throws unless the authenticator has asked its user for a PIN, a finger or a face: only then it is two factors. */
function proven(user_verified: boolean | undefined): void {
  if (user_verified !== true) throw new APIError('FORBIDDEN', { code: 'AUTHENTICATION_FAILED' });
  const check = checks.getStore();
  if (check !== undefined) check.is_right = true;
}

/** Returns better-auth's plugin for passkeys of that party, each of which a user verifies and an authenticator lists. */
export function passkeyPlugin(party: RelyingParty | null, service_name: string) {
  return passkey({
    rpName: service_name,
    rpID: party?.domain ?? LOCAL_DOMAIN,
    // With null it is the `Origin` of the request.
    origin: party?.origin ?? null,
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    advanced: { webAuthnChallengeCookie: 'passkey' },
    registration: {
      afterVerification: async ({ ctx, verification: { registrationInfo } }) => {
        proven(registrationInfo?.userVerified);
        const value = registrationInfo?.credential.id ?? '';
        const where = [{ field: 'credentialID', value }];
        const found = await ctx.context.adapter.findOne({ model: 'passkey', where });
        if (found !== null) throw new APIError('CONFLICT', { code: 'PASSKEY_EXISTS' });
        return { name: getAuthenticatorName(registrationInfo?.aaguid) ?? UNNAMED };
      },
    },
    authentication: {
      afterVerification: ({ verification }) => proven(verification.authenticationInfo.userVerified),
    },
  });
}

/** The column of the last use, which the plugin does not have. */
export const PASSKEY_USES = {
  id: 'passkey-uses',
  schema: { passkey: { fields: { lastUsedAt: { type: 'date', required: false, input: false } } } },
} satisfies BetterAuthPlugin;
