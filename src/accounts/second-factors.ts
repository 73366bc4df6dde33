import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { AccountError } from '../access/errors.ts';
import { requireOperator } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';

/** The acts on a second factor that the audit log has. */
export type SecondFactorAction =
  | 'second_factor.add'
  | 'second_factor.remove'
  | 'second_factor.recovery_codes'
  | 'second_factor.recover';

/**
 * Notes what a user did with their own second factor, which sign-in has changed before. Rejects with
 * `permission_denied` (the operator).
 */
export async function noteSecondFactor(
  context: AccountContext,
  actor: Actor,
  action: SecondFactorAction,
): Promise<void> {
  if (actor.kind !== 'user') throw new AccountError('permission_denied');
  const act = { action, organization_id: null, object_id: actor.user_id };
  await context.store.transaction((records) => recordAct(records, context, actor, act));
}

/**
 * Removes the second factor of a user who has lost it (the operator), so that the password is enough. Returns true if
 * there was one. Rejects with `permission_denied`.
 */
export async function removeSecondFactor(
  context: AccountContext,
  actor: Actor,
  user_id: string,
): Promise<boolean> {
  requireOperator(actor);
  return await context.store.transaction(async (records) => {
    if (!(await records.accounts.deleteSecondFactor(user_id))) return false;
    const act = { action: 'second_factor.remove', organization_id: null, object_id: user_id } as const;
    await recordAct(records, context, actor, act);
    return true;
  });
}
