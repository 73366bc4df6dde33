import { asc, eq } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { users } from '../../db/sqlite/schema.ts';
import type { Actor } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { checkedEmail, checkedName } from './names.ts';
import { type CreatedOrganization, insertOrganization } from './organizations.ts';
import { requireOperator } from './permissions.ts';

export type User = typeof users.$inferSelect;

/** The user with an email address; null when there is none. */
export function findUserByEmail(context: AccountContext, email: string): User | null {
  return context.db.select().from(users).where(eq(users.email, email.trim().toLowerCase())).get() ?? null;
}

/** All users, oldest first. Throws `permission_denied` for everyone but the operator. */
export function listUsers(context: AccountContext, actor: Actor): User[] {
  requireOperator(actor);
  return context.db.select().from(users).orderBy(asc(users.created_at_ms), asc(users.id)).all();
}

/**
 * Creates a user with a personal organization, owned by them, with its Default project. It is named like the user
 * unless `organization_name` is given.
 * Whoever calls has proven that the email address is the user's. Throws `invalid_email`, `invalid_name`, `email_taken`.
 */
export function signUp(
  context: AccountContext,
  given: { readonly email: string; readonly name: string; readonly organization_name?: string },
): { readonly user: User; readonly organization: CreatedOrganization } {
  const email = checkedEmail(given.email);
  const name = checkedName(given.name);
  const organization_name = checkedName(given.organization_name ?? name);
  const { db, clock, identifiers } = context;
  return transact(db, () => {
    if (findUserByEmail(context, email) !== null) throw new AccountError('email_taken');
    const user = { id: identifiers.id('user'), email, name, created_at_ms: clock.now_ms() };
    db.insert(users).values(user).run();
    return {
      user,
      organization: insertOrganization(context, {
        name: organization_name,
        owner_user_id: user.id,
        personal: true,
      }),
    };
  });
}
