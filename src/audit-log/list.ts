import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator, requirePermission } from '../access/permissions.ts';
import type { AuditLogDetail, StoredAuditLogEntry } from '../store/audit-log-records.ts';
import { AUDIT_LOG_ACTIONS, type AuditLogAction, isAuditLogAction } from './actions.ts';
import { BY_OPERATOR } from './record.ts';

/** The most entries of one page. */
export const AUDIT_LOG_PAGE_MAX = 100;

/** One line of the audit log. */
export interface AuditLogEntry {
  readonly id: number;
  readonly created_at_ms: number;
  readonly by: 'user' | 'operator';
  /** Null for the operator at the command line. Owners do not see which operator it was. */
  readonly user_id: string | null;
  readonly user_name: string | null;
  readonly user_email: string | null;
  readonly action: string;
  /** The act, in words. */
  readonly sentence: string;
  readonly object_kind: string;
  readonly object_id: string | null;
  /** The present name of the object; the address of an invitation. */
  readonly object_name: string | null;
  readonly detail: AuditLogDetail;
}

export interface AuditLogPage {
  readonly items: readonly AuditLogEntry[];
  /** The `cursor` of the next page; null on the last one. */
  readonly next: number | null;
}

/**
 * Returns a page of the audit log of an organization (owners and the operator), or with null of the service
 * (operator only), newest first. Rejects with `not_found`, `permission_denied`.
 */
export async function listAuditLog(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  given: {
    readonly organization_id: string | null;
    readonly cursor?: number | null;
    /** Lists only entries of this action. */
    readonly action?: AuditLogAction | null;
    readonly limit?: number;
  },
): Promise<AuditLogPage> {
  const { organization_id, cursor = null, action = null } = given;
  if (organization_id === null) requireOperator(actor);
  else await requirePermission(store, actor, organization_id, 'see_audit_log');
  const limit = Math.min(given.limit ?? AUDIT_LOG_PAGE_MAX, AUDIT_LOG_PAGE_MAX);
  const rows = await store.audit_log.listEntries({
    organization_id,
    action,
    before_id: cursor,
    limit: limit + 1,
  });
  const items = rows.slice(0, limit).map((row) => shownTo(actor, row));
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

function shownTo(actor: Actor, row: StoredAuditLogEntry): AuditLogEntry {
  const { [BY_OPERATOR]: by_operator, ...detail } = row.detail;
  const by = by_operator === true ? 'operator' : 'user';
  const is_hidden = by === 'operator' && actor.kind !== 'operator';
  const { id, created_at_ms, action, object_kind, object_id, object_name } = row;
  return {
    id,
    created_at_ms,
    by,
    user_id: is_hidden ? null : row.user_id,
    user_name: is_hidden ? null : row.user_name,
    user_email: is_hidden ? null : row.user_email,
    action,
    sentence: isAuditLogAction(action) ? AUDIT_LOG_ACTIONS[action].sentence : action,
    object_kind,
    object_id,
    object_name,
    detail,
  };
}
