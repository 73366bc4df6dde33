import { and, asc, between, desc, eq, gt, gte, lt, lte, max, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import type {
  DaySpan,
  DayTotal,
  NamedUsageRow,
  RolledUp,
  UsageFilter,
  UsagePlace,
  UsageRecords,
  UsageScope,
} from '../../src/store/usage-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { endOfDay_ms, startOfDay_ms } from '../../src/time/days.ts';
import { spanOf } from '../../src/usage/day-span.ts';
import { firstRow } from '../records/first-row.ts';
import { ofOrganization } from './of-organization.ts';
import { PostgresRollUpRecords } from './roll-up-records.ts';
import { apiKeys, organizations, projects, usageDays, usageRecords } from './schema.ts';
import { summedColumns } from './usage-columns.ts';
import { conditionsOf } from './usage-conditions.ts';

/** The usage in PostgreSQL. */
export class PostgresUsageRecords extends PostgresRollUpRecords implements UsageRecords {
  async page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    const { organization_id, from_ms, to_ms, request_id, ...rest } = filter;
    const newestFirst = [desc(usageRecords.time_ms), desc(usageRecords.request_id)];
    return await this.executor
      .select({
        time_ms: usageRecords.time_ms,
        model: usageRecords.model,
        mode: usageRecords.mode,
        endpoint: usageRecords.endpoint,
        project: projects.name,
        api_key: apiKeys.name,
        status: usageRecords.status,
        questions: usageRecords.questions,
        input_tokens: usageRecords.input_tokens,
        cost_micros: usageRecords.cost_micros,
        latency_ms: usageRecords.latency_ms,
        request_id: usageRecords.request_id,
      })
      .from(usageRecords)
      .innerJoin(projects, eq(projects.id, usageRecords.project_id))
      .innerJoin(apiKeys, eq(apiKeys.id, usageRecords.api_key_id))
      .where(
        and(
          organization_id === null
            ? undefined
            : ofOrganization(usageRecords.organization_id, organization_id),
          ...conditionsOf(usageRecords, { ...rest, organization_id: null }),
          request_id === undefined ? undefined : eq(usageRecords.request_id, request_id),
          from_ms === undefined ? undefined : gte(usageRecords.time_ms, from_ms),
          to_ms === undefined ? undefined : lt(usageRecords.time_ms, to_ms),
          after === undefined
            ? undefined
            : sql`(${usageRecords.time_ms}, ${usageRecords.request_id})
              < (${after.time_ms}, ${sql.param(after.request_id, usageRecords.request_id)})`,
        ),
      )
      .orderBy(...(organization_id === null ? [] : [desc(usageRecords.organization_id)]), ...newestFirst)
      .limit(limit);
  }

  async daysWithUsage(organization_id: string | null): Promise<DaySpan | undefined> {
    const end = (
      table: typeof usageRecords | typeof usageDays,
      column: typeof usageRecords.time_ms | typeof usageDays.day,
      direction: typeof asc,
    ) =>
      this.executor
        .select({ column })
        .from(table)
        .where(organization_id === null ? undefined : ofOrganization(table.organization_id, organization_id))
        .orderBy(...(organization_id === null ? [] : [direction(table.organization_id)]), direction(column))
        .limit(1);
    // One statement finds a request once, even if it is rolled up meanwhile.
    const found = await firstRow(
      this.executor.execute<Record<'oldest_ms' | 'newest_ms' | 'first_day' | 'last_day', string | null>>(
        sql`SELECT ${end(usageRecords, usageRecords.time_ms, asc)} AS oldest_ms,
          ${end(usageRecords, usageRecords.time_ms, desc)} AS newest_ms,
          ${end(usageDays, usageDays.day, asc)} AS first_day,
          ${end(usageDays, usageDays.day, desc)} AS last_day`,
      ),
    );
    if (found === undefined) return undefined;
    const { oldest_ms, newest_ms, first_day, last_day } = found;
    const number = (value: string | null) => (value === null ? null : Number(value));
    return spanOf({ oldest_ms: number(oldest_ms), newest_ms: number(newest_ms), first_day, last_day });
  }

  async totalsOfDay(day: string, scope: UsageScope): Promise<readonly DayTotal[]> {
    const rolled_up = this.executor
      .select({ ...summedColumns(usageDays), requests: sql<number>`${usageDays.requests}`.as('requests') })
      .from(usageDays)
      .where(and(...conditionsOf(usageDays, scope), eq(usageDays.day, day)));
    const kept = this.executor
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
    return await this.executor
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

  async rolledUp(
    scope: UsageScope,
    { first_day, last_day }: Partial<DaySpan>,
  ): Promise<RolledUp | undefined> {
    const found = await firstRow(
      this.executor
        .select({
          requests: sql<number | null>`sum(${usageDays.requests})`.mapWith(Number),
          last_day: max(usageDays.day),
        })
        .from(usageDays)
        .where(
          and(
            ...conditionsOf(usageDays, scope),
            first_day === undefined ? undefined : gte(usageDays.day, first_day),
            last_day === undefined ? undefined : lte(usageDays.day, last_day),
          ),
        ),
    );
    if (found === undefined || found.requests === null || found.last_day === null) return undefined;
    return { requests: found.requests, last_day: found.last_day };
  }

  async admittedAfter(
    after_ms: number,
    until_ms?: number,
  ): Promise<readonly Pick<UsageRow, 'organization_id' | 'time_ms' | 'status' | 'input_tokens'>[]> {
    return await this.executor
      .select({
        organization_id: usageRecords.organization_id,
        time_ms: usageRecords.time_ms,
        status: usageRecords.status,
        input_tokens: usageRecords.input_tokens,
      })
      .from(usageRecords)
      .where(
        and(
          gt(usageRecords.time_ms, after_ms),
          until_ms === undefined ? undefined : lte(usageRecords.time_ms, until_ms),
        ),
      );
  }

  async newestTime_ms(): Promise<number | undefined> {
    const newest = await firstRow(
      this.executor
        .select({ time_ms: usageRecords.time_ms })
        .from(usageRecords)
        .orderBy(desc(usageRecords.time_ms))
        .limit(1),
    );
    return newest?.time_ms;
  }
}
