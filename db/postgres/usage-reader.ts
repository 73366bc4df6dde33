import { and, asc, between, count, eq, gte, lt, max, min, type SQL, sql, sum } from 'drizzle-orm';
import { union } from 'drizzle-orm/pg-core';
import type { Grouping } from '../../src/store/groupings.ts';
import type {
  KeySpend,
  LatencyPercentiles,
  SeriesQuestion,
  UsageReader,
  UsageSeries,
  UsageSpan,
  UsageValues,
} from '../../src/store/usage-reader.ts';
import type { NamedUsageRow, UsageFilter, UsagePlace } from '../../src/store/usage-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { endOfDay_ms } from '../../src/time/days.ts';
import { fittedSpan } from '../../src/usage/buckets.ts';
import { boundsOf } from '../../src/usage/rolled-up-days.ts';
import { bucketsWithDays, type RolledUpDay } from '../../src/usage/summed-buckets.ts';
import { UsageSum } from '../../src/usage/usage-sum.ts';
import { valuesIn } from '../../src/usage/usage-values.ts';
import { firstRow } from '../records/first-row.ts';
import type { Executor, PgDb } from './connection.ts';
import { ofOrganization } from './of-organization.ts';
import { readOneState } from './one-state.ts';
import { usageDays, usageRecords } from './schema.ts';
import { conditionsOf } from './usage-conditions.ts';
import { PostgresUsageRecords } from './usage-records.ts';

/** Requests summed by bucket, numbered from 0, and by status. */
interface Group extends Pick<UsageRow, 'questions' | 'input_tokens' | 'cost_micros'> {
  readonly requests: number;
  readonly bucket: number | null;
  readonly status: number | null;
  /** The 50th, 90th and 99th percentiles of the latencies of answered requests; null without one. */
  readonly percentiles: readonly number[] | null;
}

/** Reads usage in PostgreSQL, which computes all sums, because the event loop would have to parse every row. */
export class PostgresUsageReader implements UsageReader {
  constructor(private readonly db: PgDb) {}

  page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    return readOneState(this.db, (executor) => new PostgresUsageRecords(executor).page(filter, limit, after));
  }

  series(question: SeriesQuestion): Promise<UsageSeries> {
    return readOneState(this.db, (executor) => seriesOf(executor, question));
  }

  values(span: UsageSpan): Promise<UsageValues> {
    return readOneState(this.db, (executor) => valuesOf(executor, span));
  }

  spendByKey(organization_id: string, from_ms: number): Promise<readonly KeySpend[]> {
    return readOneState(this.db, (executor) => spendByKey(executor, organization_id, from_ms));
  }

  firstAnswer_ms(organization_id: string): Promise<number | undefined> {
    return readOneState(this.db, (executor) => firstAnswer_ms(executor, organization_id));
  }
}

async function valuesOf(
  executor: Executor,
  { organization_id, from_ms, to_ms }: UsageSpan,
): Promise<UsageValues> {
  const scope = { organization_id };
  const bounds = boundsOf(from_ms, to_ms);
  const kept = executor
    .selectDistinct({
      model: usageRecords.model,
      mode: usageRecords.mode,
      endpoint: usageRecords.endpoint,
      status: usageRecords.status,
    })
    .from(usageRecords)
    .where(
      and(
        ...conditionsOf(usageRecords, scope),
        gte(usageRecords.time_ms, bounds.from_ms),
        lt(usageRecords.time_ms, bounds.to_ms),
      ),
    );
  const rolled_up = executor
    .selectDistinct({
      model: usageDays.model,
      mode: usageDays.mode,
      endpoint: usageDays.endpoint,
      status: usageDays.status,
    })
    .from(usageDays)
    .where(and(...conditionsOf(usageDays, scope), between(usageDays.day, bounds.first_day, bounds.last_day)));
  return valuesIn(await union(kept, rolled_up));
}

async function spendByKey(
  executor: Executor,
  organization_id: string,
  from_ms: number,
): Promise<readonly KeySpend[]> {
  return await executor
    .select({
      api_key_id: usageRecords.api_key_id,
      cost_micros: sum(usageRecords.cost_micros).mapWith(Number),
    })
    .from(usageRecords)
    .where(
      and(ofOrganization(usageRecords.organization_id, organization_id), gte(usageRecords.time_ms, from_ms)),
    )
    .groupBy(usageRecords.api_key_id)
    .orderBy(asc(usageRecords.api_key_id));
}

async function firstAnswer_ms(executor: Executor, organization_id: string): Promise<number | undefined> {
  const rolled_up = await firstRow(
    executor
      .select({ day: usageDays.day })
      .from(usageDays)
      .where(and(ofOrganization(usageDays.organization_id, organization_id), eq(usageDays.status, 200)))
      .orderBy(asc(usageDays.organization_id), asc(usageDays.day))
      .limit(1),
  );
  if (rolled_up !== undefined) return endOfDay_ms(rolled_up.day);
  const kept = await firstRow(
    executor
      .select({ time_ms: usageRecords.time_ms })
      .from(usageRecords)
      .where(and(ofOrganization(usageRecords.organization_id, organization_id), eq(usageRecords.status, 200)))
      .orderBy(asc(usageRecords.organization_id), asc(usageRecords.time_ms))
      .limit(1),
  );
  return kept?.time_ms;
}

async function seriesOf(executor: Executor, asked: SeriesQuestion): Promise<UsageSeries> {
  const days = await rolledUpDays(executor, asked);
  const question = asked.fits_data === true && days.length === 0 ? await fitted(executor, asked) : asked;
  const { from_ms, to_ms } = question;
  const { width_ms, first_ms, groups, buckets: summed } = bucketsWithDays(question, days);
  const latencies = new Map<number | null, LatencyPercentiles>();
  for (const group of await groupsOf(executor, question, { first_ms, width_ms })) {
    const { bucket, status, percentiles } = group;
    if (bucket !== null && status !== null) summed[bucket]?.sum.addCounted({ ...group, status });
    else if (percentiles !== null) latencies.set(bucket, latenciesOf(percentiles));
  }
  const total = new UsageSum();
  const buckets = summed.map(({ start_ms, sum }, index) => {
    total.addSum(sum);
    return { start_ms, ...sum.totals(), latency_ms: latencies.get(index) ?? null };
  });
  for (const { bucket, grouped, ...sums } of await groupedRows(executor, question, { first_ms, width_ms }))
    groups.add(grouped, bucket, sums);
  const totals = { ...total.totals(), latency_ms: latencies.get(null) ?? null };
  return { from_ms, to_ms, bucket_ms: width_ms, buckets, groups: groups.largest(), totals };
}

/** Returns the question with the part of its span that has requests. */
async function fitted(executor: Executor, question: SeriesQuestion): Promise<SeriesQuestion> {
  const [used] = await executor
    .select({ first_ms: min(usageRecords.time_ms), last_ms: max(usageRecords.time_ms) })
    .from(usageRecords)
    .where(rowsIn(question));
  const { first_ms = null, last_ms = null } = used ?? {};
  return first_ms === null || last_ms === null ? question : fittedSpan(question, { first_ms, last_ms });
}

/** Resolves with the sums by bucket and by the column that groups the requests; none where nothing groups them. */
async function groupedRows(
  executor: Executor,
  question: SeriesQuestion,
  { first_ms, width_ms }: { readonly first_ms: number; readonly width_ms: number },
) {
  if (question.group_by === undefined) return [];
  const bucket = sql<number>`(${usageRecords.time_ms} - ${first_ms}) / ${width_ms}`.mapWith(Number);
  const grouped = groupedColumn(usageRecords, question.group_by);
  return await executor
    .select({
      bucket,
      grouped,
      requests: count(),
      input_tokens: sum(usageRecords.input_tokens).mapWith(Number),
      cost_micros: sum(usageRecords.cost_micros).mapWith(Number),
    })
    .from(usageRecords)
    .where(rowsIn(question))
    .groupBy(sql`1`, sql`2`);
}

/** Returns the column of either table by which a chart's requests are grouped. */
function groupedColumn(table: typeof usageRecords | typeof usageDays, group_by: Grouping): SQL<string> {
  const columns = {
    status: table.status,
    project: table.project_id,
    key: table.api_key_id,
    model: table.model,
    mode: table.mode,
  };
  return sql<string>`${columns[group_by]}::text`;
}

/** Returns the conditions on the rows of a question. */
function rowsIn(question: SeriesQuestion): SQL | undefined {
  const { from_ms, to_ms, request_id } = question;
  return and(
    ...conditionsOf(usageRecords, question),
    request_id === undefined ? undefined : eq(usageRecords.request_id, request_id),
    gte(usageRecords.time_ms, from_ms),
    lt(usageRecords.time_ms, to_ms),
  );
}

/**
 * Resolves with the sums by bucket and status, by bucket (without a status), and of all (without a bucket). It is one
 * statement, because finding the rows is most of the work.
 */
async function groupsOf(
  executor: Executor,
  question: SeriesQuestion,
  { first_ms, width_ms }: { readonly first_ms: number; readonly width_ms: number },
): Promise<Group[]> {
  const row = executor
    .select({
      bucket: sql<number>`(${usageRecords.time_ms} - ${first_ms}) / ${width_ms}`.as('bucket'),
      status: usageRecords.status,
      questions: usageRecords.questions,
      input_tokens: usageRecords.input_tokens,
      cost_micros: usageRecords.cost_micros,
      latency_ms: usageRecords.latency_ms,
    })
    .from(usageRecords)
    .where(rowsIn(question))
    .as('request');
  return await executor
    .select({
      bucket: sql<number | null>`${row.bucket}`.mapWith(Number),
      status: sql<number | null>`${row.status}`.mapWith(Number),
      requests: count(),
      questions: sum(row.questions).mapWith(Number),
      input_tokens: sum(row.input_tokens).mapWith(Number),
      cost_micros: sum(row.cost_micros).mapWith(Number),
      percentiles: sql<
        readonly number[] | null
      >`percentile_disc(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY ${row.latency_ms})
        FILTER (WHERE ${row.status} = 200)`,
    })
    .from(row)
    .groupBy(sql`ROLLUP (${row.bucket}, ${row.status})`);
}

/** Returns the latencies of `UsageSum`, by nearest rank. */
function latenciesOf([p50 = 0, p90 = 0, p99 = 0]: readonly number[]): LatencyPercentiles {
  return { p50, p90, p99 };
}

async function rolledUpDays(executor: Executor, question: SeriesQuestion): Promise<RolledUpDay[]> {
  if (question.request_id !== undefined) return [];
  const { first_day, last_day } = boundsOf(question.from_ms, question.to_ms);
  const { group_by } = question;
  return await executor
    .select({
      grouped: group_by === undefined ? sql<null>`NULL` : groupedColumn(usageDays, group_by),
      day: usageDays.day,
      status: usageDays.status,
      requests: sum(usageDays.requests).mapWith(Number),
      questions: sum(usageDays.questions).mapWith(Number),
      input_tokens: sum(usageDays.input_tokens).mapWith(Number),
      cost_micros: sum(usageDays.cost_micros).mapWith(Number),
    })
    .from(usageDays)
    .where(and(...conditionsOf(usageDays, question), between(usageDays.day, first_day, last_day)))
    .groupBy(sql`1`, usageDays.day, usageDays.status);
}
