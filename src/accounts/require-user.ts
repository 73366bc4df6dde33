import { AccountError } from '../access/account-error.ts';
import type { User } from '../store/account-records.ts';
import type { Records } from '../store/store.ts';

/** Returns a user. Rejects with `not_found` where there is none, or they have deleted their account. */
export async function requireUser({ accounts }: Pick<Records, 'accounts'>, user_id: string): Promise<User> {
  const user = await accounts.findUser(user_id);
  const standing = await accounts.standingOf(user_id);
  if (user !== undefined && standing?.deleted_at_ms === null) return user;
  throw new AccountError('not_found', 'There is no such user.');
}
