import { AccountError } from '../access/account-error.ts';
import { type Actor, OPERATOR } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { findUserByEmail } from '../accounts/users.ts';
import type { User } from '../store/account-records.ts';

type StoreContext = Pick<AccountContext, 'store'>;

/** The number of matches that are looked up: two show that a name is ambiguous. */
const NAMED_MAX = 2;

/** Returns the id that a text means: itself if it is one, else the only match of this name. */
function only(
  what: string,
  text: string,
  byId: { id: string } | undefined,
  byName: readonly { id: string }[],
): string {
  if (byId !== undefined) return byId.id;
  const [first, second] = byName;
  if (first === undefined) throw new AccountError('not_found', `There is no ${what} "${text}".`);
  if (second !== undefined) {
    throw new AccountError('ambiguous_name', `Several ${what}s are named "${text}": use the id.`);
  }
  return first.id;
}

/** Returns the user with this email address. Rejects with `not_found`. */
export async function userByEmail({ store }: StoreContext, email: string): Promise<User> {
  const user = await findUserByEmail(store, email);
  if (user !== null) return user;
  throw new AccountError(
    'not_found',
    `There is no user ${email.trim()}: create one first with "tds user create".`,
  );
}

/**
 * Returns the actor of a command: the user of `--as`, with their role's permissions, or the operator. Rejects
 * with `not_found`.
 */
export async function actorOf(context: StoreContext, email: string | undefined): Promise<Actor> {
  return email === undefined ? OPERATOR : { kind: 'user', user_id: (await userByEmail(context, email)).id };
}

/** Returns the organization with this id or unique name. Rejects with `not_found`, `ambiguous_name`. */
export async function organizationId({ store: { accounts } }: StoreContext, text: string): Promise<string> {
  return only(
    'organization',
    text,
    await accounts.findOrganization(text),
    await accounts.organizationsNamed(text, NAMED_MAX),
  );
}

/**
 * Returns the project with this id, or the only active one of this name, in one organization if that is
 * given. Rejects with `not_found`, `ambiguous_name`.
 */
export async function projectId(
  { store: { accounts } }: StoreContext,
  text: string,
  organization_id?: string,
): Promise<string> {
  const project = await accounts.findProject(text);
  return only(
    'project',
    text,
    organization_id === undefined || project?.organization_id === organization_id ? project : undefined,
    await accounts.activeProjectsNamed(text, organization_id, NAMED_MAX),
  );
}

/**
 * Returns the key with this id, or the only active one of this name, in one organization if that is given.
 * Rejects with `not_found`, `ambiguous_name`.
 */
export async function keyId(
  { store: { keys } }: StoreContext,
  text: string,
  organization_id?: string,
): Promise<string> {
  const owner = await keys.findOwner(text);
  const is_found =
    owner !== undefined && (organization_id === undefined || owner.organization_id === organization_id);
  return only(
    'API key',
    text,
    is_found ? { id: text } : undefined,
    await keys.activeKeysNamed(text, organization_id, NAMED_MAX),
  );
}

/** Returns the id of the organization of a payment. Rejects with `not_found`. */
export async function payingOrganizationId(
  { store: { payments } }: StoreContext,
  payment_id: string,
): Promise<string> {
  const payment = await payments.findPayment(payment_id);
  if (payment === undefined) throw new AccountError('not_found', `There is no payment ${payment_id}.`);
  return payment.organization_id;
}
