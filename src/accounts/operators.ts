import type { Actor } from './actor.ts';
import type { AccountContext } from './context.ts';
import { requireOperator } from './permissions.ts';
import { inTransaction } from './transaction.ts';
import { insertUser, type NewUser, type SignedUp } from './users.ts';

/**
 * Creates a user who may do in the console what the command line may do; otherwise as `signUp`. Rejects with
 * `permission_denied` for everyone but the operator, `invalid_email`, `invalid_name`, `email_taken`.
 */
export async function createOperator(
  context: AccountContext,
  actor: Actor,
  given: NewUser,
): Promise<SignedUp> {
  requireOperator(actor);
  return await inTransaction(context, async (transaction) => {
    const created = await insertUser(transaction, given);
    await transaction.records.accounts.writeOperator(created.user.id, true);
    return created;
  });
}

/** Gives a user the operator's power in the console, or takes it. Rejects with `permission_denied` as above. */
export async function setOperator(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  given: { readonly user_id: string; readonly is_operator: boolean },
): Promise<void> {
  requireOperator(actor);
  await store.accounts.writeOperator(given.user_id, given.is_operator);
}
