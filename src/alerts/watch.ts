import type { AlertKind, LimitedSpending, OpenAlert } from '../store/alert-records.ts';
import type { Records, Store } from '../store/store.ts';
import { DAY_MS } from '../time/clock.ts';
import { monthOf } from '../time/month.ts';
import type { LimitRefusals } from './limit-refusals.ts';
import { type RaisedAlert, raiseAlert } from './raise.ts';

/** The share of a spend limit from which its use is near the limit. */
const NEAR_PERCENT = 80;
/** The share from which it counts as reached, also before a request is refused: what is left is next to nothing. */
const REACHED_PERCENT = 99.5;
/** The time before a key's end at which members are alerted. A key that was made for less is not announced. */
const EXPIRY_MS = 7 * DAY_MS;

/**
 * Raises an alert for each condition that has begun, and ends those whose condition is over, so that it may be raised
 * again. Each is a transaction of its own, because thousands may begin at once and have thousands of recipients. Reads
 * only, unless there is something to write.
 */
export async function watchAlerts({
  store,
  now_ms: sharedTime_ms,
  limit_refusals,
}: {
  readonly store: Store;
  readonly now_ms: () => Promise<number>;
  readonly limit_refusals: LimitRefusals;
}): Promise<void> {
  const now_ms = await sharedTime_ms();
  const refused_micros = limit_refusals.take();
  try {
    const { begun, over } = await store.snapshot((records) => changesOf(records, now_ms, refused_micros));
    // An alert that another service wrote meanwhile is not written again.
    for (const alert of over) await store.transaction(({ alerts }) => alerts.endAlert(alert.id, now_ms));
    for (const alert of begun) await store.transaction((records) => raiseAlert(records, alert, now_ms));
  } catch (error) {
    for (const [subject_id, micros] of refused_micros) limit_refusals.note(subject_id, micros);
    throw error;
  }
}

/** Returns the conditions that have no alert yet, and the open alerts whose condition is over. */
async function changesOf(
  records: Pick<Records, 'alerts'>,
  now_ms: number,
  refused_micros: ReadonlyMap<string, number>,
) {
  const open = await records.alerts.openAlerts();
  const known = new Map(open.map((alert) => [identityOf(alert), alert]));
  const conditions = await conditionsAt(records, { now_ms, refused_micros, open: known });
  const lasting = new Set(conditions.map(identityOf));
  return {
    begun: conditions.filter((condition) => !known.has(identityOf(condition))),
    over: open.filter((alert) => !lasting.has(identityOf(alert))),
  };
}

function identityOf({
  organization_id,
  kind,
  subject_id,
}: Pick<OpenAlert, 'organization_id' | 'kind' | 'subject_id'>): string {
  return `${organization_id} ${kind} ${subject_id}`;
}

/** The facts that decide beside the stored credit and spending. */
interface Situation {
  readonly now_ms: number;
  /** The smallest refused cost of projects and keys whose limit has refused a request since the last look. */
  readonly refused_micros: ReadonlyMap<string, number>;
  /** The open alerts by their identity. */
  readonly open: ReadonlyMap<string, OpenAlert>;
}

async function conditionsAt(
  { alerts }: Pick<Records, 'alerts'>,
  situation: Situation,
): Promise<RaisedAlert[]> {
  const { now_ms, refused_micros } = situation;
  const low = await alerts.organizationsWithLowCredit();
  const refused = [...refused_micros.keys()];
  const projects = await alerts.projectSpending(monthOf(now_ms), NEAR_PERCENT, refused);
  const keys = await alerts.keySpending(monthOf(now_ms), NEAR_PERCENT, refused);
  const expiring = await alerts.keysExpiring(now_ms, now_ms + EXPIRY_MS);
  return [
    ...low.map(({ id, credit_micros, credit_alert_micros }) => ({
      kind: 'credit_low' as const,
      organization_id: id,
      subject_id: id,
      amount_micros: credit_micros,
      limit_micros: credit_alert_micros,
    })),
    ...projects.flatMap((one) => spendingOf(one, situation, 'spend_limit_near', 'spend_limit_reached')),
    ...keys.flatMap((one) => spendingOf(one, situation, 'key_spend_limit_near', 'key_spend_limit_reached')),
    ...expiring
      .filter(({ created_at_ms, expires_at_ms }) => expires_at_ms - created_at_ms > EXPIRY_MS)
      .map(({ organization_id, key_id, name, expires_at_ms }) => ({
        kind: 'key_expires' as const,
        organization_id,
        subject_id: key_id,
        subject_name: name,
        expires_at_ms,
      })),
  ];
}

/** Returns at most one of two conditions, so that a limit that is reached at once causes one alert. */
function spendingOf(
  spending: LimitedSpending,
  situation: Situation,
  near: AlertKind,
  reached: AlertKind,
): RaisedAlert[] {
  const { name, spent_micros, limit_micros, ...of } = spending;
  const is_reached = isReached(spending, situation, reached);
  if (!is_reached && spent_micros < (limit_micros * NEAR_PERCENT) / 100) return [];
  return [
    {
      ...of,
      kind: is_reached ? reached : near,
      subject_name: name,
      amount_micros: spent_micros,
      limit_micros,
    },
  ];
}

/**
 * Returns true if a limit is reached: next to nothing is left, or less than a request costs that was refused for it. A
 * request that was refused only because others were under way does not count. The alert lasts until the month ends or
 * the limit changes, because no later request needs to be refused.
 */
function isReached(
  { organization_id, subject_id, spent_micros, limit_micros }: LimitedSpending,
  { now_ms, refused_micros, open }: Situation,
  reached: AlertKind,
): boolean {
  const known = open.get(identityOf({ organization_id, kind: reached, subject_id }));
  return (
    spent_micros >= (limit_micros * REACHED_PERCENT) / 100 ||
    spent_micros + (refused_micros.get(subject_id) ?? 0) > limit_micros ||
    (known?.limit_micros === limit_micros && monthOf(known.created_at_ms) === monthOf(now_ms))
  );
}
