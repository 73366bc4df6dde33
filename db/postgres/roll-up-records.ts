import { and, asc, eq, gt, gte, lt, lte, notExists, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type {
  DeletedEntry,
  DeletedUsage,
  EntryPair,
  LedgerDay,
  ProjectDay,
  RequestInLedger,
  RollUpRecords,
  UsageDay,
} from '../../src/store/roll-up-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import type { Executor } from './connection.ts';
import { auditCheckpoints, ledgerDays, ledgerEntries, usageDays, usageRecords } from './schema.ts';
import { summedColumns } from './usage-columns.ts';

/** Reads and writes the rows of the roll-up in PostgreSQL. */
export class PostgresRollUpRecords implements RollUpRecords {
  constructor(protected readonly executor: Executor) {}

  async requestsInLedger(after_entry_id: number, limit: number): Promise<readonly RequestInLedger[]> {
    const hold = alias(ledgerEntries, 'hold');
    const ended = alias(ledgerEntries, 'ended');
    const checked = this.executor.select({ id: auditCheckpoints.last_entry_id }).from(auditCheckpoints);
    const rows = await this.executor
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
    const inLedger = this.executor
      .select({ id: ledgerEntries.id })
      .from(ledgerEntries)
      .where(eq(ledgerEntries.request_id, usageRecords.request_id));
    return await this.executor
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
    return await this.executor
      .delete(ledgerEntries)
      .where(sql`${ledgerEntries.id} = ANY (${`{${ids.join()}}`}::bigint[])`)
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
    return await this.executor
      .delete(usageRecords)
      .where(sql`${usageRecords.request_id} = ANY (${sql.param(request_ids)}::text[])`)
      .returning({ request_id: usageRecords.request_id, ...summedColumns(usageRecords) });
  }

  async addLedgerDays(days: readonly LedgerDay[]): Promise<void> {
    if (days.length === 0) return;
    await this.executor
      .insert(ledgerDays)
      .values([...days])
      .onConflictDoUpdate({
        target: [ledgerDays.project_id, ledgerDays.day],
        set: {
          last_entry_id: sql`greatest(${ledgerDays.last_entry_id}, excluded.last_entry_id)`,
          charges: sql`${ledgerDays.charges} + excluded.charges`,
          charged_micros: sql`${ledgerDays.charged_micros} + excluded.charged_micros`,
        },
      });
  }

  async addUsageDays(days: readonly UsageDay[]): Promise<void> {
    if (days.length === 0) return;
    await this.executor
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
    const rows = await this.executor.execute<{ micros: string }>(sql`
      SELECT coalesce((${sum}), 0) AS micros
      FROM unnest(${sql.param(days.map(({ organization_id }) => organization_id))}::text[],
        ${sql.param(days.map(({ project_id }) => project_id))}::text[],
        ${sql.param(days.map(({ day }) => day))}::text[])
        WITH ORDINALITY AS asked (organization_id, project_id, day, place)
      ORDER BY asked.place`);
    return rows.map(({ micros }) => Number(micros));
  }
}
