import type { Grouping } from '../../src/store/groupings.ts';
import type {
  KeySpend,
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
import type { Db } from './connection.ts';
import { Transactions } from './transactions.ts';
import { conditionsOf, type UsageValues as Parameters, valuesOf } from './usage-conditions.ts';
import { SqliteUsageRecords } from './usage-records.ts';

interface Row extends Pick<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros' | 'latency_ms'> {
  readonly grouped: string | null;
}

/** The columns by which a chart's requests are grouped; `usage_records` and `usage_days` both have them. */
const GROUPED_COLUMNS = {
  status: 'CAST(status AS TEXT)',
  project: 'project_id',
  key: 'api_key_id',
  model: 'model',
  mode: 'mode',
} as const satisfies Readonly<Record<Grouping, string>>;

/** Reads usage on its own connection, because a read may take long. */
export class SqliteUsageReader implements UsageReader {
  readonly #client: Db['$client'];
  readonly #records: SqliteUsageRecords;

  constructor(db: Db) {
    this.#client = db.$client;
    this.#records = new SqliteUsageRecords(db, new Transactions(db).outside);
  }

  page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    return this.#records.page(filter, limit, after);
  }

  series(question: SeriesQuestion): Promise<UsageSeries> {
    // One transaction counts a request once, even if it is rolled up meanwhile.
    return Promise.try(this.#client.transaction(() => this.#series(question)));
  }

  values(span: UsageSpan): Promise<UsageValues> {
    return Promise.try(() => this.#values(span));
  }

  spendByKey(organization_id: string, from_ms: number): Promise<readonly KeySpend[]> {
    return Promise.try(() =>
      this.#client
        .query<KeySpend, Parameters>(
          `SELECT api_key_id, sum(cost_micros) AS cost_micros FROM usage_records
          WHERE organization_id = $organization_id AND time_ms >= $from_ms
          GROUP BY api_key_id ORDER BY api_key_id`,
        )
        .all({ organization_id, from_ms }),
    );
  }

  firstAnswer_ms(organization_id: string): Promise<number | undefined> {
    return Promise.try(() => this.#firstAnswer_ms(organization_id));
  }

  #values({ organization_id, from_ms, to_ms }: UsageSpan): UsageValues {
    const scope = { organization_id };
    const found = this.#client
      .query<Pick<UsageRow, 'model' | 'mode' | 'endpoint' | 'status'>, Parameters>(
        `SELECT DISTINCT model, mode, endpoint, status FROM usage_records
          WHERE ${conditionsOf(scope)} AND time_ms >= $from_ms AND time_ms < $to_ms
        UNION SELECT model, mode, endpoint, status FROM usage_days
          WHERE ${conditionsOf(scope)} AND day BETWEEN $first_day AND $last_day`,
      )
      .all({ ...valuesOf(scope), ...boundsOf(from_ms, to_ms) });
    return valuesIn(found);
  }

  #firstAnswer_ms(organization_id: string): number | undefined {
    const rolled_up = this.#client
      .query<{ day: string }, Parameters>(
        `SELECT day FROM usage_days WHERE organization_id = $organization_id AND status = 200 ORDER BY day LIMIT 1`,
      )
      .get({ organization_id });
    if (rolled_up !== null) return endOfDay_ms(rolled_up.day);
    const kept = this.#client
      .query<{ time_ms: number }, Parameters>(
        `SELECT time_ms FROM usage_records WHERE organization_id = $organization_id AND status = 200
        ORDER BY time_ms LIMIT 1`,
      )
      .get({ organization_id });
    return kept?.time_ms;
  }

  #series(asked: SeriesQuestion): UsageSeries {
    const days = this.#rolledUpDays(asked);
    const question = asked.fits_data === true && days.length === 0 ? this.#fitted(asked) : asked;
    const { from_ms, to_ms } = question;
    const { width_ms, groups, buckets: summed } = bucketsWithDays(question, days);
    const total = new UsageSum();
    const buckets = summed.map(({ start_ms, sum }, index) => {
      const span = { from_ms: Math.max(start_ms, from_ms), to_ms: Math.min(start_ms + width_ms, to_ms) };
      for (const row of this.#rows({ ...question, ...span })) {
        sum.add(row);
        if (row.grouped !== null) groups.add(row.grouped, index, { ...row, requests: 1 });
      }
      total.addSum(sum);
      return { start_ms, ...sum.totals() };
    });
    const totals = total.totals();
    return { from_ms, to_ms, bucket_ms: width_ms, buckets, groups: groups.largest(), totals };
  }

  /** Returns the question with the part of its span that has requests. */
  #fitted(question: SeriesQuestion): SeriesQuestion {
    const used = this.#client
      .query<{ first_ms: number | null; last_ms: number | null }, Parameters>(
        `SELECT min(time_ms) AS first_ms, max(time_ms) AS last_ms FROM usage_records WHERE ${rowsIn(question)}`,
      )
      .get(rowValuesOf(question));
    const { first_ms = null, last_ms = null } = used ?? {};
    return first_ms === null || last_ms === null ? question : fittedSpan(question, { first_ms, last_ms });
  }

  /** Returns the rows of a bucket. All at once is faster than one by one, and buckets bound their number. */
  #rows(question: SeriesQuestion): Row[] {
    return this.#client
      .query<Row, Parameters>(
        `SELECT status, questions, input_tokens, cost_micros, latency_ms, ${groupedColumn(question)} AS grouped
        FROM usage_records WHERE ${rowsIn(question)}`,
      )
      .all(rowValuesOf(question));
  }

  #rolledUpDays(question: SeriesQuestion): RolledUpDay[] {
    if (question.request_id !== undefined) return [];
    const { first_day, last_day } = boundsOf(question.from_ms, question.to_ms);
    return this.#client
      .query<RolledUpDay, Parameters>(
        `SELECT day, status, sum(requests) AS requests, sum(questions) AS questions,
          sum(input_tokens) AS input_tokens, sum(cost_micros) AS cost_micros, ${groupedColumn(question)} AS grouped
        FROM usage_days WHERE ${conditionsOf(question)} AND day BETWEEN $first_day AND $last_day
        GROUP BY day, status, ${groupedColumn(question)}`,
      )
      .all({ ...valuesOf(question), first_day, last_day });
  }
}

function groupedColumn({ group_by }: Pick<SeriesQuestion, 'group_by'>): string {
  return group_by === undefined ? 'NULL' : GROUPED_COLUMNS[group_by];
}

/** Returns the conditions on the rows of a question. */
function rowsIn(question: SeriesQuestion): string {
  const of_request = question.request_id === undefined ? '' : 'AND request_id = $request_id';
  return `${conditionsOf(question)} ${of_request} AND time_ms >= $from_ms AND time_ms < $to_ms`;
}

function rowValuesOf(question: SeriesQuestion): Parameters {
  const { from_ms, to_ms, request_id } = question;
  return { ...valuesOf(question), from_ms, to_ms, ...(request_id === undefined ? {} : { request_id }) };
}
