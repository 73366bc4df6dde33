import { openBetterAuth } from './better-auth.ts';
import { LinkTokens } from './link-tokens.ts';
import type { SignInParts } from './password-sign-in.ts';

/** Returns a link with which a user sets a password, once, within an hour; for the operator. */
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
  return links.reset(await new LinkTokens(auth, parts).issue('reset-password', user_id));
}
