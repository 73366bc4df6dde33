import { allows, type Permission, ROLES } from '../contract/roles.ts';
import type { AlertKind, NewAlert } from '../store/alert-records.ts';
import type { Records } from '../store/store.ts';

/**
 * The permission whose roles are alerted. Money is for owners, admins and billing members, because they can add credit.
 * Keys are for owners, admins and developers, because they can make others.
 */
const CONCERNED: Readonly<Record<AlertKind, Permission>> = {
  credit_low: 'top_up',
  spend_limit_near: 'top_up',
  spend_limit_reached: 'top_up',
  key_spend_limit_near: 'create_keys',
  key_spend_limit_reached: 'create_keys',
  tier_changed: 'top_up',
  payment_credited: 'top_up',
  key_expires: 'create_keys',
};

/** Alerts about an event, which has no condition that lasts. */
const EVENTS: readonly AlertKind[] = ['tier_changed', 'payment_credited'];

/** An alert to raise; the fields that its kind does not have are left out. */
export type RaisedAlert = Pick<NewAlert, 'organization_id' | 'kind' | 'subject_id'> & Partial<NewAlert>;

/**
 * Writes an alert for the members whom it concerns. To be called in the transaction of its event, so that a crash loses
 * none; a condition that lasts is found again. Changes nothing while an alert about the same condition is open.
 */
export async function raiseAlert(
  { alerts }: Pick<Records, 'alerts'>,
  alert: RaisedAlert,
  now_ms: number,
): Promise<void> {
  const nothing = { subject_name: null, amount_micros: null, limit_micros: null };
  const no_change = { from_tier: null, to_tier: null, expires_at_ms: null };
  await alerts.raise(
    { ...nothing, ...no_change, ...alert, created_at_ms: now_ms },
    {
      roles: ROLES.filter((role) => allows(role, CONCERNED[alert.kind])),
      has_ended: EVENTS.includes(alert.kind),
    },
  );
}
