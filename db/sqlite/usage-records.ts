import { and, desc, eq, gt, gte, lt, lte, type SQL, sql } from 'drizzle-orm';
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
import { type Extremes, spanOf } from '../../src/usage/day-span.ts';
import { SqliteRollUpRecords } from './roll-up-records.ts';
import { apiKeys, projects, usageRecords } from './schema.ts';
import { conditionsOf, type UsageValues, valuesOf } from './usage-conditions.ts';

/** The bounds of all days. */
const FIRST_DAY = '0000-01-01';
const LAST_DAY = '9999-12-31';

/** The usage in SQLite. */
export class SqliteUsageRecords extends SqliteRollUpRecords implements UsageRecords {
  page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    const { from_ms, to_ms, request_id } = filter;
    const conditions: (SQL | undefined)[] = [
      ...Object.entries(valuesOf(filter)).map(([column, value]) =>
        eq(sql`${usageRecords}.${sql.identifier(column)}`, value),
      ),
      request_id === undefined ? undefined : eq(usageRecords.request_id, request_id),
      from_ms === undefined ? undefined : gte(usageRecords.time_ms, from_ms),
      to_ms === undefined ? undefined : lt(usageRecords.time_ms, to_ms),
      after === undefined
        ? undefined
        : sql`(${usageRecords.time_ms}, ${usageRecords.request_id}) < (${after.time_ms}, ${after.request_id})`,
    ];
    return this.access.read(() =>
      this.db
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
        .where(and(...conditions))
        .orderBy(desc(usageRecords.time_ms), desc(usageRecords.request_id))
        .limit(limit)
        .all(),
    );
  }

  daysWithUsage(organization_id: string | null): Promise<DaySpan | undefined> {
    const scope = { organization_id };
    // Each value has a subquery, because SQLite reads a single minimum or maximum from an index, but scans for two.
    return this.access.read(() => {
      const extremes = this.db.$client
        .query<Extremes, UsageValues>(
          `SELECT (SELECT min(time_ms) FROM usage_records WHERE ${conditionsOf(scope)}) AS oldest_ms,
            (SELECT max(time_ms) FROM usage_records WHERE ${conditionsOf(scope)}) AS newest_ms,
            (SELECT min(day) FROM usage_days WHERE ${conditionsOf(scope)}) AS first_day,
            (SELECT max(day) FROM usage_days WHERE ${conditionsOf(scope)}) AS last_day`,
        )
        .get(valuesOf(scope));
      return extremes === null ? undefined : spanOf(extremes);
    });
  }

  totalsOfDay(day: string, scope: UsageScope): Promise<readonly DayTotal[]> {
    return this.access.read(() =>
      this.db.$client
        .query<DayTotal, UsageValues>(
          `SELECT organizations.name AS organization, projects.name AS project, api_keys.name AS api_key, model, mode,
          endpoint, status, sum(requests) AS requests, sum(questions) AS questions, sum(input_tokens) AS input_tokens,
          sum(cost_micros) AS cost_micros
        FROM (
          -- CROSS JOIN: by the key, which begins with the organization.
          SELECT organization_id, project_id, api_key_id, model, mode, endpoint, status, requests, questions,
            input_tokens, cost_micros
          FROM organizations CROSS JOIN usage_days ON organization_id = organizations.id AND day = $day
          WHERE ${conditionsOf(scope)}
          UNION ALL
          SELECT organization_id, project_id, api_key_id, model, mode, endpoint, status, 1, questions, input_tokens,
            cost_micros
          FROM usage_records WHERE time_ms BETWEEN $start_ms AND $end_ms AND ${conditionsOf(scope)}) AS usage
        JOIN organizations ON organizations.id = usage.organization_id
        JOIN projects ON projects.id = usage.project_id
        JOIN api_keys ON api_keys.id = usage.api_key_id
        GROUP BY usage.organization_id, usage.project_id, usage.api_key_id, model, mode, endpoint, status
        ORDER BY organization, project, api_key, model, mode, endpoint, status`,
        )
        .all({ ...valuesOf(scope), day, start_ms: startOfDay_ms(day), end_ms: endOfDay_ms(day) }),
    );
  }

  rolledUp(scope: UsageScope, days: Partial<DaySpan>): Promise<RolledUp | undefined> {
    const { first_day = FIRST_DAY, last_day = LAST_DAY } = days;
    return this.access.read(() => {
      const found = this.db.$client
        .query<{ requests: number | null; last_day: string | null }, UsageValues>(
          `SELECT sum(requests) AS requests, max(day) AS last_day FROM usage_days
          WHERE day BETWEEN $first_day AND $last_day AND ${conditionsOf(scope)}`,
        )
        .get({ ...valuesOf(scope), first_day, last_day });
      if (found === null || found.requests === null || found.last_day === null) return undefined;
      return { requests: found.requests, last_day: found.last_day };
    });
  }

  admittedAfter(
    after_ms: number,
    until_ms?: number,
  ): Promise<readonly Pick<UsageRow, 'organization_id' | 'time_ms' | 'status' | 'input_tokens'>[]> {
    return this.access.read(() =>
      this.db
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
        )
        .all(),
    );
  }

  newestTime_ms(): Promise<number | undefined> {
    return this.access.read(
      () =>
        this.db
          .select({ time_ms: usageRecords.time_ms })
          .from(usageRecords)
          .orderBy(desc(usageRecords.time_ms))
          .limit(1)
          .get()?.time_ms,
    );
  }
}
