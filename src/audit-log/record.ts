import type { Actor } from '../access/actor.ts';
import type { AuditLogDetail } from '../store/audit-log-records.ts';
import type { Records } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { AUDIT_LOG_ACTIONS, type AuditLogAction } from './actions.ts';
import { requireChangesLeft } from './changes-left.ts';

/** An act of a person. */
export interface Act {
  readonly action: AuditLogAction;
  /** Null for acts on the service, or on an account. */
  readonly organization_id: string | null;
  readonly object_id: string;
  /** Metadata only, without records, keys, tokens, passwords or email addresses. */
  readonly detail?: AuditLogDetail;
}

/** Marks the entries of the operator, who may also be a member of the organization. */
export const BY_OPERATOR = 'by_operator';

/**
 * Writes an act to the audit log, in the transaction of the change, so that both or neither are stored.
 * Rejects with `too_many_changes` when members of the organization have made too many changes in a day.
 */
export async function recordAct(
  { audit_log }: Pick<Records, 'audit_log'>,
  { clock }: { readonly clock: Clock },
  actor: Actor,
  { action, organization_id, object_id, detail = {} }: Act,
): Promise<void> {
  await requireChangesLeft({ audit_log }, actor, { action, organization_id, now_ms: clock.now_ms() });
  await audit_log.insertEntry({
    organization_id,
    user_id: actor.user_id,
    action,
    object_kind: AUDIT_LOG_ACTIONS[action].object,
    object_id,
    detail: actor.kind === 'operator' ? { ...detail, [BY_OPERATOR]: true } : detail,
    created_at_ms: clock.now_ms(),
  });
}
