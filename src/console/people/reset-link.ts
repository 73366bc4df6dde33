import { openBetterAuth } from './better-auth.ts';
import { LinkTokens } from './link-tokens.ts';
import type { SignInParts } from './password-sign-in.ts';

/**
 * Ends the sessions and the password of a user, which somebody else may have. Returns a link with which the user sets a
 * password, once, within an hour; for the operator.
 */
export async function resetLink(
  { links, ...parts }: Pick<SignInParts, 'database' | 'secret' | 'links' | 'clock' | 'identifiers'>,
  user_id: string,
): Promise<string> {
  const nothing = () => Promise.resolve();
  const auth = openBetterAuth({
    relying_party: null,
    ...parts,
    is_https: true,
    onFailure: (error) => {
      throw error;
    },
    onSignUp: nothing,
    onTakenSignUp: nothing,
    onReset: nothing,
  });
  const { internalAdapter } = await auth.$context;
  await internalAdapter.deleteAccounts(user_id);
  await internalAdapter.deleteUserSessions(user_id);
  return links.reset(await new LinkTokens(auth, parts).issue('reset-password', user_id));
}
