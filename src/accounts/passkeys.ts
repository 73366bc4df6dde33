import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { recordAct } from '../audit-log/record.ts';

/** The acts on a passkey that the audit log has. */
export type PasskeyAction = 'passkey.add' | 'passkey.remove';

/**
 * Notes what a user did with a passkey of their own, which sign-in has changed before. Rejects with `permission_denied`
 * (the operator).
 */
export async function notePasskey(
  context: AccountContext,
  actor: Actor,
  { action, passkey_id }: { readonly action: PasskeyAction; readonly passkey_id: string },
): Promise<void> {
  if (actor.kind !== 'user') throw new AccountError('permission_denied');
  const act = { action, organization_id: null, object_id: actor.user_id, detail: { passkey_id } };
  await context.store.transaction((records) => recordAct(records, context, actor, act));
}
