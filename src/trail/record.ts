import type { Actor } from '../accounts/actor.ts';
import type { Clock } from '../clock.ts';
import type { Records } from '../store.ts';
import { TRAIL_ACTIONS, type TrailAction } from './actions.ts';
import { requireChangesLeft } from './changes-left.ts';
import type { TrailDetail } from './trail-records.ts';

/** An act of a person. */
export interface Act {
  readonly action: TrailAction;
  /** Null for acts on the service, or on an account. */
  readonly organization_id: string | null;
  readonly object_id: string;
  /** Metadata only, without records, keys, tokens, passwords or email addresses. */
  readonly detail?: TrailDetail;
}

/** Marks the entries of the operator, who may also be a member of the organization. */
export const BY_OPERATOR = 'by_operator';

/**
 * Writes an act to the audit trail, in the transaction of the change, so that both or neither are stored.
 * Rejects with `too_many_changes` when members of the organization have made too many changes in a day.
 */
export async function recordAct(
  { trail }: Pick<Records, 'trail'>,
  { clock }: { readonly clock: Clock },
  actor: Actor,
  { action, organization_id, object_id, detail = {} }: Act,
): Promise<void> {
  if (actor.kind === 'user' && organization_id !== null) {
    await requireChangesLeft({ trail }, { action, organization_id, now_ms: clock.now_ms() });
  }
  await trail.insertEntry({
    organization_id,
    user_id: actor.user_id,
    action,
    object_kind: TRAIL_ACTIONS[action].object,
    object_id,
    detail: actor.kind === 'operator' ? { ...detail, [BY_OPERATOR]: true } : detail,
    created_at_ms: clock.now_ms(),
  });
}
