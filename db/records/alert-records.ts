import {
  and,
  asc,
  type Column,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  or,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import type {
  AlertKind,
  AlertRecords,
  DueAlertMail,
  ExpiringKey,
  LimitedSpending,
  OpenAlert,
  ReceivedAlert,
} from '../../src/store/alert-records.ts';
import {
  alertRecipients,
  alerts,
  apiKeys,
  members,
  organizations,
  projectMonths,
  projects,
  users,
  WHOLE_PROJECT,
} from '../tables.ts';
import { countRows } from './count-rows.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';

const { ended_at_ms: _, ...ALERT_COLUMNS } = getTableColumns(alerts);
const PERCENT = 100;
/**
 * Returns the spend of a project in a month, or of one of its keys; null for a month without a request.
 * A subquery, because a join lets a database begin with the months of all time, or with those of all keys.
 */
const spentIn = (month: string, project_id: Column, api_key_id: Column | string = WHOLE_PROJECT) =>
  sql`(SELECT ${projectMonths.spent_micros} FROM ${projectMonths} WHERE ${and(
    eq(projectMonths.project_id, project_id),
    eq(projectMonths.month, month),
    eq(projectMonths.api_key_id, api_key_id),
  )})`.mapWith(Number);

/** The other key of the same project and name that takes the place of one that expires. */
const REPLACEMENT = sql`EXISTS (SELECT 1 FROM api_keys AS newer
  WHERE newer.project_id = api_keys.project_id AND newer.name = api_keys.name AND newer.id <> api_keys.id
    AND newer.revoked_at_ms IS NULL AND newer.created_at_ms >= api_keys.created_at_ms
    AND (newer.expires_at_ms IS NULL OR newer.expires_at_ms > api_keys.expires_at_ms))`;

/** The first keys of rotations with an active key. Written as in the partial indexes, so that SQLite uses them. */
const WITH_ACTIVE = sql`(SELECT id FROM api_keys WHERE monthly_limit_micros IS NOT NULL AND revoked_at_ms IS NULL
  UNION ALL SELECT first_key_id FROM api_keys WHERE first_key_id IS NOT NULL AND revoked_at_ms IS NULL)`;

/** Alerts, and the facts that cause them. */
export class SqlAlertRecords implements AlertRecords {
  constructor(private readonly executor: Executor) {}

  async organizationsWithLowCredit() {
    const rows = await this.executor
      .select({
        id: organizations.id,
        credit_micros: organizations.credit_micros,
        credit_alert_micros: organizations.credit_alert_micros,
      })
      .from(organizations)
      .where(
        and(
          isNotNull(organizations.credit_alert_micros),
          lt(organizations.credit_micros, organizations.credit_alert_micros),
        ),
      );
    return rows.flatMap(({ credit_alert_micros, ...row }) =>
      credit_alert_micros === null ? [] : [{ ...row, credit_alert_micros }],
    );
  }

  async projectSpending(...[month, percent, ids]: Parameters<AlertRecords['projectSpending']>) {
    const spent_micros = spentIn(month, projects.id);
    const is_asked_for = or(
      inArray(projects.id, [...ids]),
      inArray(projects.id, this.#withOpen('spend_limit_reached')),
    );
    const rows = await this.executor
      .select({
        organization_id: projects.organization_id,
        subject_id: projects.id,
        name: projects.name,
        limit_micros: projects.spend_limit_micros,
        spent_micros,
      })
      .from(projects)
      .where(
        and(
          isNull(projects.archived_at_ms),
          gt(projects.spend_limit_micros, 0),
          or(
            isNear(spent_micros, projects.spend_limit_micros, percent),
            and(is_asked_for, isNotNull(spent_micros)),
          ),
        ),
      );
    return rows.flatMap(limited);
  }

  async keySpending(...[month, percent, ids]: Parameters<AlertRecords['keySpending']>) {
    const spent_micros = spentIn(month, apiKeys.project_id, apiKeys.id);
    const is_asked_for = or(
      inArray(apiKeys.id, [...ids]),
      inArray(apiKeys.id, this.#withOpen('key_spend_limit_reached')),
    );
    const rows = await this.executor
      .select({
        organization_id: projects.organization_id,
        subject_id: apiKeys.id,
        name: apiKeys.name,
        limit_micros: apiKeys.monthly_limit_micros,
        spent_micros,
      })
      .from(apiKeys)
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .where(
        and(
          sql`${apiKeys.id} IN ${WITH_ACTIVE}`,
          gt(apiKeys.monthly_limit_micros, 0),
          or(
            isNear(spent_micros, apiKeys.monthly_limit_micros, percent),
            and(is_asked_for, isNotNull(spent_micros)),
          ),
        ),
      );
    return rows.flatMap(limited);
  }

  /** Selects what an open alert of that kind is about. */
  #withOpen(kind: AlertKind) {
    return this.executor
      .select({ subject_id: alerts.subject_id })
      .from(alerts)
      .where(and(isNull(alerts.ended_at_ms), eq(alerts.kind, kind)));
  }

  async keysExpiring(now_ms: number, until_ms: number): Promise<ExpiringKey[]> {
    const rows = await this.executor
      .select({
        organization_id: projects.organization_id,
        key_id: apiKeys.id,
        name: apiKeys.name,
        created_at_ms: apiKeys.created_at_ms,
        expires_at_ms: apiKeys.expires_at_ms,
      })
      .from(apiKeys)
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .where(
        and(
          isNull(apiKeys.revoked_at_ms),
          gt(apiKeys.expires_at_ms, now_ms),
          lte(apiKeys.expires_at_ms, until_ms),
          sql`NOT ${REPLACEMENT}`,
        ),
      );
    return rows.flatMap(({ expires_at_ms, ...row }) =>
      expires_at_ms === null ? [] : [{ ...row, expires_at_ms }],
    );
  }

  async writeCreditAlert(organization_id: string, credit_alert_micros: number | null): Promise<void> {
    await this.executor
      .update(organizations)
      .set({ credit_alert_micros })
      .where(eq(organizations.id, organization_id));
  }

  async openAlerts(): Promise<OpenAlert[]> {
    return await this.executor
      .select({
        id: alerts.id,
        organization_id: alerts.organization_id,
        kind: alerts.kind,
        subject_id: alerts.subject_id,
        limit_micros: alerts.limit_micros,
        created_at_ms: alerts.created_at_ms,
      })
      .from(alerts)
      .where(isNull(alerts.ended_at_ms));
  }

  raise(...[alert, { roles, has_ended }]: Parameters<AlertRecords['raise']>): Promise<void> {
    const { created_at_ms } = alert;
    return this.executor.transaction(async (transaction) => {
      const [raised] = await transaction
        .insert(alerts)
        .values({ ...alert, ended_at_ms: has_ended ? created_at_ms : null })
        .onConflictDoNothing()
        .returning({ id: alerts.id });
      if (raised === undefined) return;
      // One statement: an organization may have thousands of members.
      await transaction.insert(alertRecipients).select(
        transaction
          .select({
            alert_id: alerts.id,
            user_id: users.id,
            read_at_ms: sql<null>`NULL`.as('read_at_ms'),
            mail_due_ms: sql<
              number | null
            >`CASE WHEN ${users.email_verified} AND ${users.gets_alert_mails} THEN ${alerts.created_at_ms} END`.as(
              'mail_due_ms',
            ),
          })
          .from(alerts)
          .innerJoin(members, eq(members.organization_id, alerts.organization_id))
          .innerJoin(users, eq(users.id, members.user_id))
          .where(and(eq(alerts.id, raised.id), inArray(members.role, [...roles]))),
      );
    });
  }

  async endAlert(alert_id: number, ended_at_ms: number): Promise<void> {
    await this.executor
      .update(alerts)
      .set({ ended_at_ms })
      .where(and(eq(alerts.id, alert_id), isNull(alerts.ended_at_ms)));
  }

  async forgetEnded(before_ms: number): Promise<void> {
    await this.executor
      .delete(alerts)
      .where(and(lt(alerts.created_at_ms, before_ms), lt(alerts.ended_at_ms, before_ms)));
  }

  async forgetOrganization(organization_id: string): Promise<void> {
    await this.executor.delete(alerts).where(eq(alerts.organization_id, organization_id));
    await this.writeCreditAlert(organization_id, null);
  }

  async received(user_id: string, limit: number): Promise<ReceivedAlert[]> {
    return await this.executor
      .select({
        ...ALERT_COLUMNS,
        organization_name: organizations.name,
        read_at_ms: alertRecipients.read_at_ms,
      })
      .from(alertRecipients)
      .innerJoin(alerts, eq(alerts.id, alertRecipients.alert_id))
      .innerJoin(organizations, eq(organizations.id, alerts.organization_id))
      .where(eq(alertRecipients.user_id, user_id))
      .orderBy(desc(alertRecipients.alert_id))
      .limit(limit);
  }

  countUnread(user_id: string): Promise<number> {
    const is_unread = and(eq(alertRecipients.user_id, user_id), isNull(alertRecipients.read_at_ms));
    return countRows(this.executor, alertRecipients, is_unread);
  }

  async markRead(user_id: string, up_to_id: number, read_at_ms: number): Promise<void> {
    await this.executor
      .update(alertRecipients)
      .set({ read_at_ms })
      .where(
        and(
          eq(alertRecipients.user_id, user_id),
          lte(alertRecipients.alert_id, up_to_id),
          isNull(alertRecipients.read_at_ms),
        ),
      );
  }

  async getsAlertMails(user_id: string): Promise<boolean> {
    const row = await firstRow(
      this.executor.select({ is_on: users.gets_alert_mails }).from(users).where(eq(users.id, user_id)),
    );
    return row?.is_on ?? false;
  }

  async writeAlertMails(user_id: string, is_on: boolean): Promise<void> {
    await this.executor.transaction(async (transaction) => {
      await transaction.update(users).set({ gets_alert_mails: is_on }).where(eq(users.id, user_id));
      if (is_on) return;
      await transaction
        .update(alertRecipients)
        .set({ mail_due_ms: null })
        .where(eq(alertRecipients.user_id, user_id));
    });
  }

  async dueMails(now_ms: number, since_ms: number, limit: number): Promise<DueAlertMail[]> {
    return await this.executor
      .select({
        ...ALERT_COLUMNS,
        organization_name: organizations.name,
        user_id: users.id,
        email: users.email,
      })
      .from(alertRecipients)
      .innerJoin(alerts, eq(alerts.id, alertRecipients.alert_id))
      .innerJoin(organizations, eq(organizations.id, alerts.organization_id))
      .innerJoin(users, eq(users.id, alertRecipients.user_id))
      .where(
        and(
          isNotNull(alertRecipients.mail_due_ms),
          lte(alertRecipients.mail_due_ms, now_ms),
          // A mail is due from its alert on. So the index leaves out those that nobody could send in time.
          gte(alertRecipients.mail_due_ms, since_ms),
          gte(alerts.created_at_ms, since_ms),
          // An event has ended when it is written; a condition that is over is no news.
          or(isNull(alerts.ended_at_ms), eq(alerts.ended_at_ms, alerts.created_at_ms)),
        ),
      )
      .orderBy(asc(alertRecipients.mail_due_ms), asc(alertRecipients.alert_id))
      .limit(limit);
  }

  async claimMail(...[mail, now_ms, next_due_ms]: Parameters<AlertRecords['claimMail']>): Promise<boolean> {
    const claimed = await this.executor
      .update(alertRecipients)
      .set({ mail_due_ms: next_due_ms })
      .where(and(isOf(mail), lte(alertRecipients.mail_due_ms, now_ms)))
      .returning({ alert_id: alertRecipients.alert_id });
    return claimed.length > 0;
  }

  async noteMailed(mail: Pick<DueAlertMail, 'id' | 'user_id'>): Promise<void> {
    await this.executor.update(alertRecipients).set({ mail_due_ms: null }).where(isOf(mail));
  }
}

/** Returns the condition that what was spent is at least that share of a limit. */
function isNear(spent_micros: SQLWrapper, limit_micros: Column, percent: number) {
  return sql`${spent_micros} * ${PERCENT} >= ${limit_micros} * ${percent}`;
}

function limited({
  limit_micros,
  ...row
}: Omit<LimitedSpending, 'limit_micros'> & { readonly limit_micros: number | null }): LimitedSpending[] {
  return limit_micros === null ? [] : [{ ...row, limit_micros }];
}

function isOf({ id, user_id }: Pick<DueAlertMail, 'id' | 'user_id'>) {
  return and(eq(alertRecipients.alert_id, id), eq(alertRecipients.user_id, user_id));
}
