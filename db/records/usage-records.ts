import { and, asc, desc, eq, gt, gte, inArray, lt, lte, max, notExists, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import type {
  DeletedEntry,
  DeletedUsage,
  EntryPair,
  LedgerDay,
  RequestInLedger,
  UsageDay,
} from '../../src/store/roll-up-records.ts';
import type {
  DaySpan,
  NamedUsageRow,
  RolledUp,
  UsageFilter,
  UsagePlace,
  UsageScope,
} from '../../src/store/usage-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { spanOf } from '../../src/usage/day-span.ts';
import {
  apiKeys,
  auditCheckpoints,
  ledgerDays,
  ledgerEntries,
  projects,
  usageDays,
  usageRecords,
} from '../tables.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';
import { summedColumns } from './usage-columns.ts';
import { conditionsOf } from './usage-conditions.ts';

/** The usage and its roll-up, as far as both databases can say it in the same words. */
export class SqlUsageRecords {
  readonly #executor: Executor;
  readonly #ofOrganization: (column: PgColumn, organization_id: string) => SQL;

  /** `ofOrganization` makes the condition for rows of one organization that are sorted by it first. */
  constructor(executor: Executor, ofOrganization: (column: PgColumn, organization_id: string) => SQL = eq) {
    this.#executor = executor;
    this.#ofOrganization = ofOrganization;
  }

  async page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    const { organization_id, from_ms, to_ms, request_id, ...rest } = filter;
    const newestFirst = [desc(usageRecords.time_ms), desc(usageRecords.request_id)];
    return await this.#executor
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
            : this.#ofOrganization(usageRecords.organization_id, organization_id),
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
      this.#executor
        .select({ column })
        .from(table)
        .where(
          organization_id === null ? undefined : this.#ofOrganization(table.organization_id, organization_id),
        )
        .orderBy(...(organization_id === null ? [] : [direction(table.organization_id)]), direction(column))
        .limit(1);
    const number = (query: ReturnType<typeof end>) => sql<number | null>`${query}`.mapWith(Number);
    const day = (query: ReturnType<typeof end>) => sql<string | null>`${query}`;
    // One statement finds a request once, even if it is rolled up meanwhile.
    const found = await firstRow(
      this.#executor
        .select({
          oldest_ms: number(end(usageRecords, usageRecords.time_ms, asc)),
          newest_ms: number(end(usageRecords, usageRecords.time_ms, desc)),
          first_day: day(end(usageDays, usageDays.day, asc)),
          last_day: day(end(usageDays, usageDays.day, desc)),
        })
        .from(sql`(SELECT 1) AS one`),
    );
    return found === undefined ? undefined : spanOf(found);
  }

  async requestsInLedger(after_entry_id: number, limit: number): Promise<readonly RequestInLedger[]> {
    const hold = alias(ledgerEntries, 'hold');
    const ended = alias(ledgerEntries, 'ended');
    const checked = this.#executor.select({ id: auditCheckpoints.last_entry_id }).from(auditCheckpoints);
    const rows = await this.#executor
      .select({
        request_id: sql<string>`${hold.request_id}`,
        hold: {
          entry_id: hold.id,
          at_ms: hold.created_at_ms,
          organization_id: hold.organization_id,
          project_id: hold.project_id,
          month: hold.month,
          credit_delta_micros: hold.credit_delta_micros,
          held_delta_micros: hold.held_delta_micros,
        },
        end: {
          kind: sql<'charge' | 'release'>`${ended.kind}`,
          entry_id: ended.id,
          at_ms: ended.created_at_ms,
          organization_id: ended.organization_id,
          project_id: ended.project_id,
          month: ended.month,
          credit_delta_micros: ended.credit_delta_micros,
          held_delta_micros: ended.held_delta_micros,
        },
        usage: {
          time_ms: usageRecords.time_ms,
          organization_id: usageRecords.organization_id,
          project_id: usageRecords.project_id,
          status: usageRecords.status,
          cost_micros: usageRecords.cost_micros,
        },
      })
      .from(hold)
      .leftJoin(ended, and(eq(ended.hold_entry_id, hold.id), lte(ended.id, checked)))
      .leftJoin(usageRecords, eq(usageRecords.request_id, hold.request_id))
      .where(and(gt(hold.id, after_entry_id), lte(hold.id, checked), eq(hold.kind, 'hold')))
      .orderBy(asc(hold.id))
      .limit(limit);
    return rows.map((row) => ({ ...row, end: row.end ?? undefined, usage: row.usage ?? undefined }));
  }

  async requestsOutsideLedger(
    from_ms: number,
    before_ms: number,
    limit: number,
  ): Promise<readonly Pick<UsageRow, 'request_id' | 'time_ms' | 'cost_micros'>[]> {
    const inLedger = this.#executor
      .select({ id: ledgerEntries.id })
      .from(ledgerEntries)
      .where(eq(ledgerEntries.request_id, usageRecords.request_id));
    return await this.#executor
      .select({
        request_id: usageRecords.request_id,
        time_ms: usageRecords.time_ms,
        cost_micros: usageRecords.cost_micros,
      })
      .from(usageRecords)
      .where(
        and(gte(usageRecords.time_ms, from_ms), lt(usageRecords.time_ms, before_ms), notExists(inLedger)),
      )
      .orderBy(asc(usageRecords.time_ms))
      .limit(limit);
  }

  async deleteEntries(pairs: readonly EntryPair[]): Promise<readonly DeletedEntry[]> {
    if (pairs.length === 0) return [];
    const ids = pairs.flatMap(({ hold_entry_id, end_entry_id }) => [hold_entry_id, end_entry_id]);
    return await this.#executor
      .delete(ledgerEntries)
      .where(inArray(ledgerEntries.id, ids))
      .returning({
        entry_id: ledgerEntries.id,
        organization_id: ledgerEntries.organization_id,
        project_id: sql<string>`${ledgerEntries.project_id}`,
        kind: ledgerEntries.kind,
        credit_delta_micros: ledgerEntries.credit_delta_micros,
        held_delta_micros: ledgerEntries.held_delta_micros,
      });
  }

  async deleteUsage(request_ids: readonly string[]): Promise<readonly DeletedUsage[]> {
    if (request_ids.length === 0) return [];
    return await this.#executor
      .delete(usageRecords)
      .where(inArray(usageRecords.request_id, [...request_ids]))
      .returning({ request_id: usageRecords.request_id, ...summedColumns(usageRecords) });
  }

  async addLedgerDays(days: readonly LedgerDay[]): Promise<void> {
    if (days.length === 0) return;
    await this.#executor
      .insert(ledgerDays)
      .values([...days])
      .onConflictDoUpdate({
        target: [ledgerDays.project_id, ledgerDays.day],
        set: {
          last_entry_id: sql`CASE WHEN excluded.last_entry_id > ${ledgerDays.last_entry_id}
            THEN excluded.last_entry_id ELSE ${ledgerDays.last_entry_id} END`,
          charges: sql`${ledgerDays.charges} + excluded.charges`,
          charged_micros: sql`${ledgerDays.charged_micros} + excluded.charged_micros`,
        },
      });
  }

  async addUsageDays(days: readonly UsageDay[]): Promise<void> {
    if (days.length === 0) return;
    await this.#executor
      .insert(usageDays)
      .values([...days])
      .onConflictDoUpdate({
        target: [
          usageDays.organization_id,
          usageDays.day,
          usageDays.project_id,
          usageDays.api_key_id,
          usageDays.model,
          usageDays.mode,
          usageDays.endpoint,
          usageDays.status,
        ],
        set: {
          requests: sql`${usageDays.requests} + excluded.requests`,
          questions: sql`${usageDays.questions} + excluded.questions`,
          input_tokens: sql`${usageDays.input_tokens} + excluded.input_tokens`,
          cost_micros: sql`${usageDays.cost_micros} + excluded.cost_micros`,
        },
      });
  }

  async rolledUp(
    scope: UsageScope,
    { first_day, last_day }: Partial<DaySpan>,
  ): Promise<RolledUp | undefined> {
    const found = await firstRow(
      this.#executor
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
    return await this.#executor
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
      this.#executor
        .select({ time_ms: usageRecords.time_ms })
        .from(usageRecords)
        .orderBy(desc(usageRecords.time_ms))
        .limit(1),
    );
    return newest?.time_ms;
  }
}
