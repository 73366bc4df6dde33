import { and, eq, isNull } from 'drizzle-orm';
import { apiKeys, organizations, projects } from '../../db/sqlite/schema.ts';
import { type Actor, OPERATOR } from '../accounts/actor.ts';
import type { AccountContext } from '../accounts/context.ts';
import { AccountError } from '../accounts/errors.ts';
import { findUserByEmail, type User } from '../accounts/users.ts';

/** The one id that a text means: itself when it is one, else the only thing of this name. */
function only(
  what: string,
  text: string,
  byId: string | undefined,
  byName: readonly { id: string }[],
): string {
  if (byId !== undefined) return byId;
  const [first, second] = byName;
  if (first === undefined) throw new AccountError('not_found', `There is no ${what} "${text}".`);
  if (second !== undefined) {
    throw new AccountError('ambiguous_name', `Several ${what}s are named "${text}": use the id.`);
  }
  return first.id;
}

/** The user with this email address. Throws `not_found`. */
export function userByEmail(context: AccountContext, email: string): User {
  const user = findUserByEmail(context, email);
  if (user !== null) return user;
  throw new AccountError(
    'not_found',
    `There is no user ${email.trim()}: create one first with "tds user create".`,
  );
}

/** Who does what a command does: the user of `--as`, with what their role allows, or the operator. Throws `not_found`. */
export function actorOf(context: AccountContext, email: string | undefined): Actor {
  return email === undefined ? OPERATOR : { kind: 'user', user_id: userByEmail(context, email).id };
}

/** The organization with this id or unique name. Throws `not_found`, `ambiguous_name`. */
export function organizationId({ db }: AccountContext, text: string): string {
  const columns = { id: organizations.id };
  return only(
    'organization',
    text,
    db.select(columns).from(organizations).where(eq(organizations.id, text)).get()?.id,
    db.select(columns).from(organizations).where(eq(organizations.name, text)).limit(2).all(),
  );
}

/**
 * The project with this id, or the only active one of this name, in one organization if that is given. Throws
 * `not_found`, `ambiguous_name`.
 */
export function projectId({ db }: AccountContext, text: string, organization_id?: string): string {
  const columns = { id: projects.id };
  const inOrganization =
    organization_id === undefined ? undefined : eq(projects.organization_id, organization_id);
  return only(
    'project',
    text,
    db
      .select(columns)
      .from(projects)
      .where(and(eq(projects.id, text), inOrganization))
      .get()?.id,
    db
      .select(columns)
      .from(projects)
      .where(and(eq(projects.name, text), isNull(projects.archived_at_ms), inOrganization))
      .limit(2)
      .all(),
  );
}

/**
 * The key with this id, or the only active one of this name, in one organization if that is given. Throws `not_found`,
 * `ambiguous_name`.
 */
export function keyId({ db }: AccountContext, text: string, organization_id?: string): string {
  const inOrganization =
    organization_id === undefined ? undefined : eq(projects.organization_id, organization_id);
  const find = () =>
    db.select({ id: apiKeys.id }).from(apiKeys).innerJoin(projects, eq(projects.id, apiKeys.project_id));
  return only(
    'API key',
    text,
    find()
      .where(and(eq(apiKeys.id, text), inOrganization))
      .get()?.id,
    find()
      .where(and(eq(apiKeys.name, text), isNull(apiKeys.revoked_at_ms), inOrganization))
      .limit(2)
      .all(),
  );
}
