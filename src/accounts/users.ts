import { eq } from 'drizzle-orm';
import { transact } from '../../db/connection.ts';
import { users } from '../../db/schema.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { checkedEmail, checkedName } from './names.ts';
import { type CreatedOrganization, insertOrganization } from './organizations.ts';

export type User = typeof users.$inferSelect;

/** The user with an email address; null when there is none. */
export function findUserByEmail(context: AccountContext, email: string): User | null {
  return context.db.select().from(users).where(eq(users.email, email.trim().toLowerCase())).get() ?? null;
}

/**
 * Creates a user with a personal organization, named like the user and owned by them, with its Default project.
 * Whoever calls has proven that the email address is the user's. Throws `invalid_email`, `invalid_name`, `email_taken`.
 */
export function signUp(
  context: AccountContext,
  given: { readonly email: string; readonly name: string },
): { readonly user: User; readonly organization: CreatedOrganization } {
  const email = checkedEmail(given.email);
  const name = checkedName(given.name);
  const { db, clock, identifiers } = context;
  return transact(db, () => {
    if (findUserByEmail(context, email) !== null) throw new AccountError('email_taken');
    const user = { id: identifiers.id('user'), email, name, created_at_ms: clock.now_ms() };
    db.insert(users).values(user).run();
    return {
      user,
      organization: insertOrganization(context, { name, owner_user_id: user.id, personal: true }),
    };
  });
}
