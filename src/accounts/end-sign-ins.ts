import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import type { EndedSignIns } from '../store/account-records.ts';
import type { Store } from '../store/store.ts';

/** The parts of a context that the rule needs. */
type Context = Pick<AccountContext, 'clock'> & { readonly store: Pick<Store, 'transaction'> };

/**
 * Ends every way in of a user, some of which somebody else may have (the operator): password, sessions, links, second
 * factor and passkeys. Returns what there was. Rejects with `permission_denied`.
 */
export async function endSignIns(context: Context, actor: Actor, user_id: string): Promise<EndedSignIns> {
  requireOperator(actor);
  const first = await endOnce(context, actor, user_id);
  // A session that the first transaction ends may still add a passkey on PostgreSQL, up to its commit.
  const later = await endOnce(context, actor, user_id);
  return {
    passkeys: first.passkeys + later.passkeys,
    had_second_factor: first.had_second_factor || later.had_second_factor,
  };
}

async function endOnce(context: Context, actor: Actor, user_id: string): Promise<EndedSignIns> {
  return await context.store.transaction(async (records) => {
    const ended = await records.accounts.deleteSignIns(user_id);
    const of_user = { organization_id: null, object_id: user_id };
    if (ended.passkeys > 0) {
      const detail = { passkeys: ended.passkeys };
      await recordAct(records, context, actor, { action: 'passkey.remove', ...of_user, detail });
    }
    if (ended.had_second_factor) {
      await recordAct(records, context, actor, { action: 'second_factor.remove', ...of_user });
    }
    return ended;
  });
}
