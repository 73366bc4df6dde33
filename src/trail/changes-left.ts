import { AccountError } from '../accounts/errors.ts';
import { DAY_MS } from '../clock.ts';
import type { Records } from '../store.ts';
import type { TrailAction } from './actions.ts';

/** Changes that the members of an organization may make within a day, some kilobyte of the database each. */
export const CHANGES_PER_DAY = 1_000;

/** Where top-ups stop: after everything else, so that no member keeps the others from paying. */
const TOP_UPS_STOP_AT = 1_200;

/** What takes away, or ends, what was given before: no more often than that, and nobody may be kept from it. */
const ALWAYS_ALLOWED: ReadonlySet<TrailAction> = new Set([
  'organization.close',
  'project.archive',
  'key.revoke',
  'member.remove',
  'member.leave',
  'invitation.revoke',
  'invitation.accept',
  'account.delete',
  'top_up.cancel',
]);

/**
 * Rejects with `too_many_changes` when the organization has made its changes of a day. The audit trail itself counts
 * them, so that they count on every node and after a restart.
 */
export async function requireChangesLeft(
  { trail }: Pick<Records, 'trail'>,
  {
    action,
    organization_id,
    now_ms,
  }: { readonly action: TrailAction; readonly organization_id: string; readonly now_ms: number },
): Promise<void> {
  if (ALWAYS_ALLOWED.has(action)) return;
  const most = action === 'top_up.start' ? TOP_UPS_STOP_AT : CHANGES_PER_DAY;
  const at_ms = await trail.timeOfEntry_ms(organization_id, most - 1);
  if (at_ms !== undefined && at_ms > now_ms - DAY_MS) throw new AccountError('too_many_changes');
}
