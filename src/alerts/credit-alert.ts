import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';

/** A thousand times the largest credit that anybody has. */
const AMOUNT_MAX_MICROS = 1e15;

/**
 * Sets the credit below which an organization's members are alerted (owners, admins and billing members); null for no
 * alert. Rejects with `invalid_amount`, `not_found`, `permission_denied`.
 */
export async function setCreditAlert(
  context: Pick<AccountContext, 'store' | 'clock'>,
  actor: Actor,
  given: { readonly organization_id: string; readonly credit_alert_micros: number | null },
): Promise<void> {
  const { organization_id, credit_alert_micros } = given;
  await context.store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'top_up');
    if (credit_alert_micros !== null && !isAmount(credit_alert_micros))
      throw new AccountError('invalid_amount');
    await records.alerts.writeCreditAlert(organization_id, credit_alert_micros);
    await recordAct(records, context, actor, {
      action: 'organization.credit_alert',
      organization_id,
      object_id: organization_id,
      detail: { credit_alert_micros },
    });
  });
}

function isAmount(micros: number): boolean {
  return Number.isSafeInteger(micros) && micros > 0 && micros <= AMOUNT_MAX_MICROS;
}
