import { AccountError } from '../../src/access/account-error.ts';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { addMember } from '../../src/accounts/members.ts';
import { signUp } from '../../src/accounts/users.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';

/** Everybody whom a rule must tell apart: the five roles, the operator, and a user who is no member. */
export const EVERYONE = [...ROLES, 'operator', 'stranger'] as const;
export type Who = (typeof EVERYONE)[number];

export type UserActor = Actor & { readonly kind: 'user' };

/** A new user with a personal organization, whose address is `NAME@example.com`. */
export async function newUser(context: AccountContext, name: string): Promise<UserActor> {
  const { user } = await signUp(context, { email: `${name}@example.com`, name });
  return { kind: 'user', user_id: user.id };
}

/** The operator, and a new user for each role in the organization and for the stranger. */
export async function addEveryone(
  context: AccountContext,
  organization_id: string,
): Promise<Record<Who, Actor> & Record<Role | 'stranger', UserActor>> {
  const everyone = {
    owner: await newUser(context, 'owner'),
    admin: await newUser(context, 'admin'),
    developer: await newUser(context, 'developer'),
    billing: await newUser(context, 'billing'),
    reader: await newUser(context, 'reader'),
    stranger: await newUser(context, 'stranger'),
    operator: OPERATOR,
  };
  for (const role of ROLES) {
    await addMember(context, OPERATOR, { organization_id, user_id: everyone[role].user_id, role });
  }
  return everyone;
}

/** Notes that the user has followed the link that was mailed to their address. */
export async function verifyEmail(
  { run }: { run(statement: string): Promise<void> },
  { user_id }: UserActor,
): Promise<void> {
  await run(`UPDATE users SET email_verified = true WHERE id = '${user_id}'`);
}

/** `ok`, or the code of the refusal. */
export async function outcome(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
    return 'ok';
  } catch (error) {
    if (error instanceof AccountError) return error.code;
    throw error;
  }
}
