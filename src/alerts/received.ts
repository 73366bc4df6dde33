import type { ReceivedAlert } from '../store/alert-records.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';

/** The most alerts of a list. */
const LISTED_MAX = 20;

/** A person's alerts of all their organizations. */
export interface ReceivedAlerts {
  readonly unread: number;
  /** The newest, newest first. */
  readonly items: readonly ReceivedAlert[];
  /** True if they are also mailed, where the service has a mail server. */
  readonly gets_mails: boolean;
}

/** Returns the alerts of a user; the caller has checked who it is. */
export async function receivedAlerts(
  { store }: { readonly store: Store },
  user_id: string,
): Promise<ReceivedAlerts> {
  return await store.snapshot(async ({ alerts }) => ({
    unread: await alerts.countUnread(user_id),
    items: await alerts.received(user_id, LISTED_MAX),
    gets_mails: await alerts.getsAlertMails(user_id),
  }));
}

/** Marks a user's alerts up to this one as read; the caller has checked who it is. */
export async function markAlertsRead(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  user_id: string,
  up_to_id: number,
): Promise<void> {
  await store.alerts.markRead(user_id, up_to_id, clock.now_ms());
}
