import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import type { User } from '../store/account-records.ts';
import type { Records } from '../store/store.ts';
import { checkedEmail, checkedName } from './names.ts';
import { type CreatedOrganization, insertOrganization } from './organizations.ts';
import { inTransaction, type Transaction } from './transaction.ts';

/** Returns the user with an email address; null when there is none. */
export async function findUserByEmail(
  { accounts }: Pick<Records, 'accounts'>,
  email: string,
): Promise<User | null> {
  return (await accounts.findUserByEmail(email.trim().toLowerCase())) ?? null;
}

/** Returns all users, oldest first. Rejects with `permission_denied` for everyone but the operator. */
export async function listUsers({ store }: AccountContext, actor: Actor): Promise<User[]> {
  requireOperator(actor);
  return await store.accounts.allUsers();
}

export interface NewUser {
  readonly email: string;
  readonly name: string;
  /** The name of the personal organization; the user's name by default. */
  readonly organization_name?: string;
}

export interface SignedUp {
  readonly user: User;
  readonly organization: CreatedOrganization;
}

/**
 * Creates a user with a personal organization, owned by them, with its Default project. It has the user's
 * name unless `organization_name` is given. The caller has verified the email address. Rejects with
 * `invalid_email`, `invalid_name`, `email_taken`.
 */
export function signUp(context: AccountContext, given: NewUser): Promise<SignedUp> {
  return inTransaction(context, (transaction) => insertUser(transaction, given));
}

/** Renames a user; the caller has checked who it is. A deleted one stays as it is. Rejects with `invalid_name`. */
export async function renameUser(
  { store }: Pick<AccountContext, 'store'>,
  user_id: string,
  name: string,
): Promise<void> {
  await store.accounts.renameUser(user_id, checkedName(name));
}

/** Does the same as `signUp`, inside a transaction of the caller. */
export async function insertUser(transaction: Transaction, given: NewUser): Promise<SignedUp> {
  const { records, clock, identifiers } = transaction;
  const email = checkedEmail(given.email);
  const name = checkedName(given.name);
  const organization_name = checkedName(given.organization_name ?? name);
  if ((await findUserByEmail(records, email)) !== null) throw new AccountError('email_taken');
  const user = { id: identifiers.id('user'), email, name, created_at_ms: clock.now_ms() };
  await records.accounts.insertUser(user);
  const organization = await insertOrganization(transaction, {
    name: organization_name,
    owner_user_id: user.id,
    personal: true,
  });
  return { user, organization };
}
