import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { Records } from '../store/store.ts';
import { DAY_MS } from '../time/clock.ts';
import type { AuditLogAction } from './actions.ts';

/**
 * The changes that the members of an organization may make in a day; each takes about a kilobyte of the
 * database.
 */
export const CHANGES_PER_DAY = 1_000;

/** The limit for top-ups, which is higher so that no member can keep the others from paying. */
const TOP_UPS_STOP_AT = 1_200;

/**
 * Acts that remove or end something, which must always be possible. Each needs an earlier act that the limit
 * counts.
 */
const ALWAYS_ALLOWED: ReadonlySet<AuditLogAction> = new Set([
  'organization.close',
  'project.archive',
  'key.revoke',
  'own_model.remove',
  'member.remove',
  'member.leave',
  'invitation.revoke',
  'invitation.accept',
  'account.delete',
  'top_up.cancel',
]);

/**
 * Rejects with `too_many_changes` when the actor is a member, and the organization has made its changes of a
 * day. Counts them in the audit log, so that the limit holds on every node and after a restart.
 */
export async function requireChangesLeft(
  { audit_log }: Pick<Records, 'audit_log'>,
  actor: Actor,
  {
    action,
    organization_id,
    now_ms,
  }: { readonly action: AuditLogAction; readonly organization_id: string | null; readonly now_ms: number },
): Promise<void> {
  if (actor.kind === 'operator' || organization_id === null || ALWAYS_ALLOWED.has(action)) return;
  const most = action === 'top_up.start' ? TOP_UPS_STOP_AT : CHANGES_PER_DAY;
  const at_ms = await audit_log.timeOfEntry_ms(organization_id, most - 1);
  if (at_ms !== undefined && at_ms > now_ms - DAY_MS) throw new AccountError('too_many_changes');
}
