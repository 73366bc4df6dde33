import type { Role } from '../contract/roles.ts';

export const ALERT_KINDS = [
  'credit_low',
  'spend_limit_near',
  'spend_limit_reached',
  'key_spend_limit_near',
  'key_spend_limit_reached',
  'tier_changed',
  'payment_credited',
  'key_expires',
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** The subject of an alert, and its numbers at that time. A field that its kind does not have is null. */
export interface NewAlert {
  readonly organization_id: string;
  readonly kind: AlertKind;
  /** The id of the project, key or payment; the organization's own id where the alert is about none. */
  readonly subject_id: string;
  /** The name of the project or key. */
  readonly subject_name: string | null;
  /** The credit, what was spent, or what was paid. */
  readonly amount_micros: number | null;
  /** The limit that the amount is compared with. */
  readonly limit_micros: number | null;
  readonly from_tier: number | null;
  readonly to_tier: number | null;
  readonly expires_at_ms: number | null;
}

/** A stored alert. */
export interface Alert extends NewAlert {
  readonly id: number;
  readonly created_at_ms: number;
}

/** The condition of an alert that has not ended. */
export type OpenAlert = Pick<
  Alert,
  'id' | 'organization_id' | 'kind' | 'subject_id' | 'limit_micros' | 'created_at_ms'
>;

/** An alert as one of its recipients sees it. */
export interface ReceivedAlert extends Alert {
  readonly organization_name: string;
  readonly read_at_ms: number | null;
}

/** An alert that is to be mailed to one recipient. */
export interface DueAlertMail extends Alert {
  readonly organization_name: string;
  readonly user_id: string;
  readonly email: string;
}

/** An active project or key with a spend limit, and how much of it is used in the month. */
export interface LimitedSpending {
  readonly organization_id: string;
  readonly subject_id: string;
  readonly name: string;
  readonly limit_micros: number;
  readonly spent_micros: number;
}

/** An active key with an end and without a replacement of its name. */
export interface ExpiringKey {
  readonly organization_id: string;
  readonly key_id: string;
  readonly name: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
}

/** The stored alerts, and the stored facts that cause them. */
export interface AlertRecords {
  /** Returns the organizations whose credit is below the amount that they chose. */
  organizationsWithLowCredit(): Promise<
    { readonly id: string; readonly credit_micros: number; readonly credit_alert_micros: number }[]
  >;
  /**
   * Returns the spending in a UTC month of active projects with a limit. They have spent at least `percent` of it, have an
   * open alert that it is reached, or their id is among `ids`.
   */
  projectSpending(month: string, percent: number, ids: readonly string[]): Promise<LimitedSpending[]>;
  /** Does the same for keys. The subject is the first of a key's rotations, of which one is active. */
  keySpending(month: string, percent: number, ids: readonly string[]): Promise<LimitedSpending[]>;
  /**
   * Returns the active keys that expire after `now_ms` and at `until_ms` or before. A key is not among them if
   * its project has a newer active key of its name that ends later, as after a rotation.
   */
  keysExpiring(now_ms: number, until_ms: number): Promise<ExpiringKey[]>;
  writeCreditAlert(organization_id: string, credit_alert_micros: number | null): Promise<void>;

  /** Returns the alerts that have not ended. */
  openAlerts(): Promise<OpenAlert[]>;
  /**
   * Inserts an alert with its recipients: the members with these roles. Those with a verified address who want mails get
   * one. Changes nothing while an alert about the same is open. With `has_ended` it never is.
   */
  raise(
    alert: NewAlert & { readonly created_at_ms: number },
    recipients: { readonly roles: readonly Role[]; readonly has_ended: boolean },
  ): Promise<void>;
  endAlert(alert_id: number, ended_at_ms: number): Promise<void>;
  /** Deletes ended alerts from before a time. */
  forgetEnded(before_ms: number): Promise<void>;
  /** Deletes an organization's alerts, and the amount below which its credit is one. */
  forgetOrganization(organization_id: string): Promise<void>;

  /** Returns a user's newest alerts, newest first, at most `limit`. */
  received(user_id: string, limit: number): Promise<ReceivedAlert[]>;
  countUnread(user_id: string): Promise<number>;
  /** Marks a user's alerts up to this one as read. */
  markRead(user_id: string, up_to_id: number, read_at_ms: number): Promise<void>;
  getsAlertMails(user_id: string): Promise<boolean>;
  /** Turns mails for a user on or off; off also drops those that were not sent yet. */
  writeAlertMails(user_id: string, is_on: boolean): Promise<void>;

  /** Returns mails that are due by `now_ms` for alerts since `since_ms`, oldest first, at most `limit`. */
  dueMails(now_ms: number, since_ms: number, limit: number): Promise<DueAlertMail[]>;
  /**
   * Puts a due mail off until another time, so that no other service sends it before. Returns false if it was not due
   * any more.
   */
  claimMail(
    mail: Pick<DueAlertMail, 'id' | 'user_id'>,
    now_ms: number,
    next_due_ms: number,
  ): Promise<boolean>;
  /** Notes that a mail was sent. */
  noteMailed(mail: Pick<DueAlertMail, 'id' | 'user_id'>): Promise<void>;
}
