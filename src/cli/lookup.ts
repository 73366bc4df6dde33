import type { User } from '../accounts/account-records.ts';
import { type Actor, OPERATOR } from '../accounts/actor.ts';
import type { AccountContext } from '../accounts/context.ts';
import { AccountError } from '../accounts/errors.ts';
import { findUserByEmail } from '../accounts/users.ts';

type StoreContext = Pick<AccountContext, 'store'>;

/** How many things of a name are looked for: two say that it is ambiguous. */
const NAMED_MAX = 2;

/** The one id that a text means: itself when it is one, else the only thing of this name. */
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

/** The user with this email address. Rejects with `not_found`. */
export async function userByEmail({ store }: StoreContext, email: string): Promise<User> {
  const user = await findUserByEmail(store, email);
  if (user !== null) return user;
  throw new AccountError(
    'not_found',
    `There is no user ${email.trim()}: create one first with "tds user create".`,
  );
}

/**
 * Who does what a command does: the user of `--as`, with what their role allows, or the operator. Rejects with
 * `not_found`.
 */
export async function actorOf(context: StoreContext, email: string | undefined): Promise<Actor> {
  return email === undefined ? OPERATOR : { kind: 'user', user_id: (await userByEmail(context, email)).id };
}

/** The organization with this id or unique name. Rejects with `not_found`, `ambiguous_name`. */
export async function organizationId({ store: { accounts } }: StoreContext, text: string): Promise<string> {
  return only(
    'organization',
    text,
    await accounts.findOrganization(text),
    await accounts.organizationsNamed(text, NAMED_MAX),
  );
}

/**
 * The project with this id, or the only active one of this name, in one organization if that is given. Rejects with
 * `not_found`, `ambiguous_name`.
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
 * The key with this id, or the only active one of this name, in one organization if that is given. Rejects with
 * `not_found`, `ambiguous_name`.
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
