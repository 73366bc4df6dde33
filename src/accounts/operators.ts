import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import { inTransaction } from './transaction.ts';
import { insertUser, type NewUser, type SignedUp } from './users.ts';

/**
 * Creates a user with the operator's power in the console; otherwise as `signUp`. Rejects with
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
    await recordAct(transaction.records, context, actor, {
      action: 'operator.grant',
      organization_id: null,
      object_id: created.user.id,
    });
    return created;
  });
}

/**
 * Gives a user the operator's power in the console, or removes it. Setting the present value changes nothing.
 * Rejects with `permission_denied` as above, and with `not_found`.
 */
export async function setOperator(
  { store, clock }: Pick<AccountContext, 'store' | 'clock'>,
  actor: Actor,
  given: { readonly user_id: string; readonly is_operator: boolean },
): Promise<void> {
  requireOperator(actor);
  const { user_id, is_operator } = given;
  await store.transaction(async (records) => {
    const standing = await records.accounts.standingOf(user_id);
    if (standing === undefined) throw new AccountError('not_found', 'There is no such user.');
    if (standing.is_operator === is_operator) return;
    await records.accounts.writeOperator(user_id, is_operator);
    await recordAct(records, { clock }, actor, {
      action: is_operator ? 'operator.grant' : 'operator.withdraw',
      organization_id: null,
      object_id: user_id,
    });
  });
}
