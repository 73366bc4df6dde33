import { and, asc, between, eq, type SQL, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import type { ProjectDay } from '../../src/store/roll-up-records.ts';
import type { DayTotal, UsageRecords, UsageScope } from '../../src/store/usage-records.ts';
import { endOfDay_ms, startOfDay_ms } from '../../src/time/days.ts';
import { summedColumns } from '../records/usage-columns.ts';
import { conditionsOf } from '../records/usage-conditions.ts';
import { SqlUsageRecords } from '../records/usage-records.ts';
import type { Executor } from './connection.ts';
import { ofOrganization } from './of-organization.ts';
import { apiKeys, ledgerDays, organizations, projects, usageDays, usageRecords } from './schema.ts';

/** The usage in PostgreSQL. */
export class PostgresUsageRecords extends SqlUsageRecords implements UsageRecords {
  readonly #executor: Executor;

  constructor(executor: Executor) {
    super(executor, ofOrganization);
    this.#executor = executor;
  }

  async totalsOfDay(day: string, scope: UsageScope): Promise<readonly DayTotal[]> {
    const rolled_up = this.#executor
      .select({ ...summedColumns(usageDays), requests: sql<number>`${usageDays.requests}`.as('requests') })
      .from(usageDays)
      .where(and(...conditionsOf(usageDays, scope), eq(usageDays.day, day)));
    const kept = this.#executor
      .select({ ...summedColumns(usageRecords), requests: sql<number>`1::bigint`.as('requests') })
      .from(usageRecords)
      .where(
        and(
          ...conditionsOf(usageRecords, scope),
          between(usageRecords.time_ms, startOfDay_ms(day), endOfDay_ms(day)),
        ),
      );
    const usage = unionAll(rolled_up, kept).as('usage');
    const sumOf = (column: (typeof usage)['requests' | 'questions' | 'input_tokens' | 'cost_micros']) =>
      sql<number>`sum(${column})`.mapWith(Number);
    const group = [usage.model, usage.mode, usage.endpoint, usage.status];
    const ids = [organizations.id, projects.id, apiKeys.id];
    return await this.#executor
      .select({
        organization: organizations.name,
        project: projects.name,
        api_key: apiKeys.name,
        model: usage.model,
        mode: usage.mode,
        endpoint: usage.endpoint,
        status: usage.status,
        requests: sumOf(usage.requests),
        questions: sumOf(usage.questions),
        input_tokens: sumOf(usage.input_tokens),
        cost_micros: sumOf(usage.cost_micros),
      })
      .from(usage)
      .innerJoin(organizations, eq(organizations.id, usage.organization_id))
      .innerJoin(projects, eq(projects.id, usage.project_id))
      .innerJoin(apiKeys, eq(apiKeys.id, usage.api_key_id))
      .groupBy(...ids, ...group)
      .orderBy(asc(organizations.name), asc(projects.name), asc(apiKeys.name), ...group, ...ids);
  }

  chargedOnDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]> {
    return this.#sumsOf(
      days,
      sql`SELECT charged.charged_micros FROM ${ledgerDays} AS charged
        WHERE charged.project_id = asked.project_id AND charged.day = asked.day`,
    );
  }

  costOfDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]> {
    return this.#sumsOf(
      days,
      sql`SELECT sum(usage.cost_micros) FROM ${usageDays} AS usage
        WHERE usage.organization_id = asked.organization_id AND usage.project_id = asked.project_id
          AND usage.day = asked.day AND usage.status = 200`,
    );
  }

  /** Resolves with the query's sums for the given days, in their order. */
  async #sumsOf(days: readonly ProjectDay[], sum: SQL): Promise<readonly number[]> {
    if (days.length === 0) return [];
    const rows = await this.#executor.execute<{ micros: string }>(sql`
      SELECT coalesce((${sum}), 0) AS micros
      FROM unnest(${sql.param(days.map(({ organization_id }) => organization_id))}::text[],
        ${sql.param(days.map(({ project_id }) => project_id))}::text[],
        ${sql.param(days.map(({ day }) => day))}::text[])
        WITH ORDINALITY AS asked (organization_id, project_id, day, place)
      ORDER BY asked.place`);
    return rows.map(({ micros }) => Number(micros));
  }
}
