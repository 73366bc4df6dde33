import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
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
